package org.loam.jvm.programs.bench7;

/**
 * The eight structural modifications. Each looks first whether it can be done, and fails before it
 * writes.
 */
final class Structural {
  private Structural() {}

  private static Assembly anyBase(Context c) {
    return c.all.bases.find(c.tx, c.anyId(c.sizes.bases()));
  }

  private static Assembly anyComplex(Context c) {
    return c.all.complexes.find(c.tx, c.anyId(c.sizes.complexes()));
  }

  private static CompositePart anyComposite(Context c) {
    return c.all.composites.find(c.tx, c.anyId(c.sizes.compositeParts()));
  }

  /** A new composite part, which nobody uses. */
  static long addPart(Context c) {
    if (c.all.compositeIds.available(c.tx) == 0
        || c.all.atomicIds.available(c.tx) < c.sizes.atomicParts()) {
      return Operation.FAILED;
    }
    Build.compositePart(c);
    return 1;
  }

  static long removePart(Context c) {
    CompositePart part = anyComposite(c);
    if (part == null) {
      return Operation.FAILED;
    }
    Build.remove(c, part);
    return 1;
  }

  /** One more component of a base assembly. */
  static long link(Context c) {
    CompositePart part = anyComposite(c);
    Assembly base = anyBase(c);
    if (part == null || base == null) {
      return Operation.FAILED;
    }
    Build.link(c, base, part);
    return 1;
  }

  /** One less. */
  static long unlink(Context c) {
    Assembly base = anyBase(c);
    int count = base == null ? 0 : base.components.size(c.tx);
    if (count == 0) {
      return Operation.FAILED;
    }
    CompositePart part = base.components.at(c.tx, c.random.below(count));
    base.components.remove(c.tx, part);
    part.usedIn.remove(c.tx, base);
    return 1;
  }

  private static void addChild(Context c, Assembly above) {
    Assembly child = Build.assembly(c, above.level - 1, above);
    above.children.add(c.tx, child);
  }

  /** A base assembly more, beside another one. */
  static long addBase(Context c) {
    Assembly base = anyBase(c);
    if (base == null || c.all.baseIds.available(c.tx) == 0) {
      return Operation.FAILED;
    }
    addChild(c, base.above);
    return 1;
  }

  /** A full subtree more, below a complex assembly. */
  static long addComplex(Context c) {
    Assembly above = anyComplex(c);
    if (above == null) {
      return Operation.FAILED;
    }
    int bases = Sizes.power(above.level - 2);
    int complexes = (bases - 1) / (Sizes.FAN_OUT - 1);
    if (c.all.baseIds.available(c.tx) < bases || c.all.complexIds.available(c.tx) < complexes) {
      return Operation.FAILED;
    }
    addChild(c, above);
    return 1;
  }

  static long removeBase(Context c) {
    return remove(c, anyBase(c));
  }

  static long removeComplex(Context c) {
    return remove(c, anyComplex(c));
  }

  /** With all that is below; not the root, and not the only child. */
  private static long remove(Context c, Assembly assembly) {
    if (assembly == null || assembly.above == null) {
      return Operation.FAILED;
    }
    Items<Assembly> siblings = assembly.above.children;
    if (siblings.size(c.tx) == 1) {
      return Operation.FAILED;
    }
    siblings.remove(c.tx, assembly);
    Build.remove(c, assembly);
    return 1;
  }
}
