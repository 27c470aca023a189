package org.loam.jvm.programs.bench7;

import org.loam.jvm.programs.bench7.AtomicPart.Connection;

/** Ways through the structure that several operations take. */
final class Walks {
  private Walks() {}

  /** What a walk does with a composite part; returns what the walk adds up. */
  abstract static class Visit {
    abstract long of(Context c, CompositePart part);
  }

  /** Each component of each base assembly below, as often as it is one. */
  static long components(Context c, Assembly assembly, Visit visit) {
    long sum = 0;
    if (assembly.isBase()) {
      for (Object part : assembly.components.all(c.tx)) {
        sum += visit.of(c, (CompositePart) part);
      }
      return sum;
    }
    for (Object child : assembly.children.all(c.tx)) {
      sum += components(c, (Assembly) child, visit);
    }
    return sum;
  }

  /**
   * The atomic parts of a composite part, depth first from its root; returns how many there are.
   *
   * @param others what is done with all but the first
   */
  static long parts(Context c, CompositePart whole, Treatment first, Treatment others, int times) {
    return parts(c, whole.root(), new VisitedSet(), first, others, times);
  }

  private static long parts(
      Context c,
      AtomicPart part,
      VisitedSet visited,
      Treatment first,
      Treatment others,
      int times) {
    if (!visited.add(part.id)) {
      return 0;
    }
    for (int i = 0; i < times; ++i) {
      first.change(c, part);
    }
    long count = 1;
    for (Object to : part.to.all(c.tx)) {
      count += parts(c, ((Connection) to).destination(), visited, others, others, times);
    }
    return count;
  }

  /** A random way down the tree; null if the base assembly at its end has no component. */
  static CompositePart descend(Context c) {
    Assembly assembly = c.all.root();
    while (!assembly.isBase()) {
      Items<Assembly> children = assembly.children;
      assembly = children.at(c.tx, c.random.below(children.size(c.tx)));
    }
    int count = assembly.components.size(c.tx);
    return count == 0 ? null : assembly.components.at(c.tx, c.random.below(count));
  }

  /** The assemblies above what uses a part, each once; returns how many. */
  static long above(Context c, CompositePart part, boolean toggles) {
    VisitedSet visited = new VisitedSet();
    long count = 0;
    for (Object base : part.usedIn.all(c.tx)) {
      for (Assembly one = (Assembly) base; one != null; one = one.above) {
        // Identifiers of the two kinds of assemblies overlap.
        if (!visited.add(one.isBase() ? 2 * one.id : 2 * one.id + 1)) {
          break;
        }
        look(c, one, toggles);
        ++count;
      }
    }
    return count;
  }

  /** Looks at an object, or toggles its date. */
  static void look(Context c, Dated object, boolean toggles) {
    if (toggles) {
      object.toggleDate(c.tx);
    } else {
      object.touch(c.tx);
    }
  }

  static boolean hasNewerComponent(Context c, Assembly base) {
    int date = base.date(c.tx);
    boolean has = false;
    for (Object part : base.components.all(c.tx)) {
      has = has || ((CompositePart) part).date(c.tx) > date;
    }
    return has;
  }
}
