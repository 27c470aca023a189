package org.loam.jvm.programs.bench7;

/** What the twelve long traversals do. */
final class LongTraversals {
  private LongTraversals() {}

  /** T1 to T3c. */
  private static final class Parts extends Walks.Visit {
    private final Treatment first;
    private final Treatment others;
    private final int times;

    Parts(Treatment first, Treatment others, int times) {
      this.first = first;
      this.others = others;
      this.times = times;
    }

    @Override
    long of(Context c, CompositePart part) {
      return Walks.parts(c, part, first, others, times);
    }
  }

  private static final class Letters extends Walks.Visit {
    @Override
    long of(Context c, CompositePart part) {
      return part.document.text(c.tx).count(c.tx, Text.COUNTED);
    }
  }

  private static final class Starts extends Walks.Visit {
    @Override
    long of(Context c, CompositePart part) {
      return Text.exchangeStart(c.tx, part.document);
    }
  }

  private static final class Roots extends Walks.Visit {
    @Override
    long of(Context c, CompositePart part) {
      part.root().touch(c.tx);
      return 1;
    }
  }

  private static long components(Context c, Walks.Visit visit) {
    return Walks.components(c, c.all.root(), visit);
  }

  /** Of the first part of each walk alone. */
  static long first(Context c, Treatment treatment) {
    return components(c, new Parts(treatment, Treatment.LOOK, 1));
  }

  /** Of every part, so many times. */
  static long each(Context c, Treatment treatment, int times) {
    return components(c, new Parts(treatment, treatment, times));
  }

  static long countLetters(Context c) {
    return components(c, new Letters());
  }

  static long exchangeStarts(Context c) {
    return components(c, new Starts());
  }

  static long lookAtRoots(Context c) {
    return components(c, new Roots());
  }

  /** Assemblies that have a component which is newer than the base assembly that uses it. */
  static long countNewer(Context c, Assembly assembly) {
    if (assembly.isBase()) {
      return Walks.hasNewerComponent(c, assembly) ? 1 : 0;
    }
    long count = 0;
    for (Object child : assembly.children.all(c.tx)) {
      count += countNewer(c, (Assembly) child);
    }
    if (count == 0) {
      return 0;
    }
    assembly.touch(c.tx);
    return count + 1;
  }

  static long lookAtAll(Context c) {
    long count = 0;
    Index.Cursor<AtomicPart> parts = c.all.atomicById.all(c.tx);
    for (AtomicPart part = parts.next(c.tx); part != null; part = parts.next(c.tx)) {
      part.touch(c.tx);
      ++count;
    }
    return count;
  }
}
