package org.loam.jvm.programs.bench7;

/** What the ten short traversals do. */
final class ShortTraversals {
  private static final int TITLES = 100;

  private ShortTraversals() {}

  /** A random atomic part of a random component; returns the sum of its places. */
  static long anyPart(Context c, boolean exchanges) {
    CompositePart whole = Walks.descend(c);
    if (whole == null) {
      return Operation.FAILED;
    }
    int chosen = c.random.below(c.sizes.atomicParts());
    Index.Cursor<AtomicPart> parts = whole.parts.all(c.tx);
    AtomicPart part = parts.next(c.tx);
    for (int i = 0; i < chosen; ++i) {
      part = parts.next(c.tx);
    }
    long sum = part.x(c.tx) + part.y(c.tx);
    if (exchanges) {
      part.exchangePlaces(c.tx);
    }
    return sum;
  }

  static long anyDocument(Context c, boolean changes) {
    CompositePart whole = Walks.descend(c);
    if (whole == null) {
      return Operation.FAILED;
    }
    return changes
        ? Text.exchangeStart(c.tx, whole.document)
        : whole.document.text(c.tx).count(c.tx, Text.COUNTED);
  }

  /** All assemblies above what uses a random atomic part. */
  static long walkUp(Context c, boolean toggles) {
    AtomicPart part = c.all.atomicById.find(c.tx, c.anyId(c.sizes.atomics()));
    return part == null ? Operation.FAILED : Walks.above(c, part.part, toggles);
  }

  /** Who uses the parts of random titles. */
  static long users(Context c) {
    long count = 0;
    for (int i = 0; i < TITLES; ++i) {
      Document document = c.all.documents.find(c.tx, c.anyId(c.sizes.compositeParts()));
      if (document == null) {
        continue;
      }
      for (Object base : document.part.usedIn.all(c.tx)) {
        ((Assembly) base).touch(c.tx);
        ++count;
      }
    }
    return count;
  }

  /** Base assemblies that are older than one of their components. */
  static long countOlder(Context c) {
    long count = 0;
    Index.Cursor<Assembly> bases = c.all.bases.all(c.tx);
    for (Assembly base = bases.next(c.tx); base != null; base = bases.next(c.tx)) {
      count += Walks.hasNewerComponent(c, base) ? 1 : 0;
    }
    return count;
  }

  /** All atomic parts of a random component. */
  static long walkComponent(Context c, Treatment treatment) {
    CompositePart whole = Walks.descend(c);
    return whole == null ? Operation.FAILED : Walks.parts(c, whole, treatment, treatment, 1);
  }
}
