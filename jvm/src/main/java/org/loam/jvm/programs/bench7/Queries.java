package org.loam.jvm.programs.bench7;

/** What the fifteen operations do. */
final class Queries {
  private static final int RANDOM_PARTS = 10;

  private Queries() {}

  static long randomParts(Context c, Treatment treatment) {
    long count = 0;
    for (int i = 0; i < RANDOM_PARTS; ++i) {
      AtomicPart part = c.all.atomicById.find(c.tx, c.anyId(c.sizes.atomics()));
      if (part != null) {
        treatment.change(c, part);
        ++count;
      }
    }
    return count;
  }

  /** The newest percents of the atomic parts, without those of the last date. */
  static long newParts(Context c, Treatment treatment, int percent) {
    int from = Sizes.DATE_MOST - percent * (Sizes.DATE_MOST - Sizes.DATE_LEAST) / 100;
    long count = 0;
    Index.Cursor<Index<AtomicPart>> sets = c.all.atomicByDate.from(c.tx, from, Sizes.DATE_MOST);
    for (Index<AtomicPart> set = sets.next(c.tx); set != null; set = sets.next(c.tx)) {
      Index.Cursor<AtomicPart> parts = set.all(c.tx);
      for (AtomicPart part = parts.next(c.tx); part != null; part = parts.next(c.tx)) {
        treatment.change(c, part);
        ++count;
      }
    }
    return count;
  }

  static long manualLetters(Context c) {
    return c.all.manual.text(c.tx).count(c.tx, Text.COUNTED);
  }

  /** Whether the manual's first character is its last one. */
  static long manualEnds(Context c) {
    Text text = c.all.manual.text(c.tx);
    return text.at(c.tx, 0) == text.at(c.tx, text.length() - 1) ? 1 : 0;
  }

  /** A random assembly and those with the same parent. */
  static long siblings(Context c, Index<Assembly> index, int objects, boolean toggles) {
    Assembly assembly = index.find(c.tx, c.anyId(objects));
    if (assembly == null) {
      return Operation.FAILED;
    }
    if (assembly.above == null) {
      Walks.look(c, assembly, toggles);
      return 1;
    }
    Object[] children = assembly.above.children.all(c.tx);
    for (Object child : children) {
      Walks.look(c, (Assembly) child, toggles);
    }
    return children.length;
  }

  static long complexSiblings(Context c, boolean toggles) {
    return siblings(c, c.all.complexes, c.sizes.complexes(), toggles);
  }

  static long baseSiblings(Context c, boolean toggles) {
    return siblings(c, c.all.bases, c.sizes.bases(), toggles);
  }

  /** The components of a random base assembly. */
  static long components(Context c, boolean toggles) {
    Assembly base = c.all.bases.find(c.tx, c.anyId(c.sizes.bases()));
    if (base == null) {
      return Operation.FAILED;
    }
    Object[] components = base.components.all(c.tx);
    for (Object part : components) {
      Walks.look(c, (CompositePart) part, toggles);
    }
    return components.length;
  }
}
