package org.loam.jvm.programs.bench7;

import org.loam.jvm.programs.bench7.AtomicPart.Connection;

/**
 * Making and removing parts: at set-up, and in structural modifications. Before any of these is
 * called its caller has asked whether there are enough identifiers.
 */
final class Build {
  private Build() {}

  // ---- the index by date: sets of atomic parts, made when they are needed and never removed

  static void addToDate(Context c, AtomicPart part) {
    int date = part.date(c.tx);
    Index<AtomicPart> set = c.all.atomicByDate.find(c.tx, date);
    if (set == null) {
      set = new Index<>(c.tx);
      c.all.atomicByDate.insert(c.tx, date, set);
    }
    set.insert(c.tx, part.id, part);
  }

  static void removeFromDate(Context c, AtomicPart part) {
    c.all.atomicByDate.find(c.tx, part.date(c.tx)).remove(c.tx, part.id);
  }

  // ---- composite parts

  private static void connect(Context c, AtomicPart source, AtomicPart destination) {
    int type = c.random.below(Sizes.TYPES);
    int length = 1 + c.random.below(Sizes.LENGTHS);
    source.to.add(c.tx, new Connection(source, destination, type, length));
    destination.from.add(c.tx, new Connection(destination, source, type, length));
  }

  private static AtomicPart atomicPart(Context c, CompositePart whole) {
    int id = c.all.atomicIds.take(c.tx);
    int type = c.random.below(Sizes.TYPES);
    int date = c.between(Sizes.DATE_LEAST, Sizes.DATE_MOST);
    int x = c.random.below(Sizes.PLACES);
    AtomicPart part = new AtomicPart(c.tx, whole, id, type, date, x);
    whole.parts.insert(c.tx, id, part);
    c.all.atomicById.insert(c.tx, id, part);
    addToDate(c, part);
    return part;
  }

  /**
   * A ring of all atomic parts, then connections from each to any, until it has as many as it shall
   * have.
   */
  private static void graph(Context c, CompositePart whole) {
    int count = c.sizes.atomicParts();
    java.util.List<AtomicPart> parts = new java.util.ArrayList<>(count);
    for (int i = 0; i < count; ++i) {
      parts.add(atomicPart(c, whole));
    }
    whole.root(parts.get(0));
    for (int i = 0; i < count; ++i) {
      connect(c, parts.get(i), parts.get((i + 1) % count));
    }
    for (int i = 0; i < count; ++i) {
      for (int k = 1; k < Sizes.CONNECTIONS; ++k) {
        connect(c, parts.get(i), parts.get(c.random.below(count)));
      }
    }
  }

  static void compositePart(Context c) {
    int id = c.all.compositeIds.take(c.tx);
    boolean isYoung = c.random.below(100) < Sizes.YOUNG_PERCENT;
    int date =
        isYoung ? c.between(Sizes.YOUNG_LEAST, Sizes.YOUNG_MOST) : c.between(0, Sizes.OLD_MOST);
    int type = c.random.below(Sizes.TYPES);
    Text text = Text.of(c.tx, Text.document(id, c.sizes.documentChars()), c.arrays);
    CompositePart whole = new CompositePart(c.tx, id, type, date, text);
    graph(c, whole);
    c.all.documents.insert(c.tx, id, whole.document);
    c.all.composites.insert(c.tx, id, whole);
  }

  static void link(Context c, Assembly base, CompositePart part) {
    base.components.add(c.tx, part);
    part.usedIn.add(c.tx, base);
  }

  static void remove(Context c, CompositePart whole) {
    Index.Cursor<AtomicPart> parts = whole.parts.all(c.tx);
    for (AtomicPart part = parts.next(c.tx); part != null; part = parts.next(c.tx)) {
      removeFromDate(c, part);
      c.all.atomicById.remove(c.tx, part.id);
      c.all.atomicIds.give(c.tx, part.id);
    }
    for (Object base : whole.usedIn.all(c.tx)) {
      ((Assembly) base).components.remove(c.tx, whole);
    }
    c.all.documents.remove(c.tx, whole.id);
    c.all.composites.remove(c.tx, whole.id);
    c.all.compositeIds.give(c.tx, whole.id);
  }

  // ---- assemblies

  /** A parent is registered after its children. */
  static Assembly assembly(Context c, int level, Assembly above) {
    int id = (level == 1 ? c.all.baseIds : c.all.complexIds).take(c.tx);
    int type = c.random.below(Sizes.TYPES);
    int date = c.between(Sizes.DATE_LEAST, Sizes.DATE_MOST);
    Assembly made = new Assembly(c.tx, above, level, id, type, date);
    for (int i = 0; level != 1 && i < Sizes.FAN_OUT; ++i) {
      made.children.add(c.tx, assembly(c, level - 1, made));
    }
    (level == 1 ? c.all.bases : c.all.complexes).insert(c.tx, id, made);
    return made;
  }

  /** With all that is below. It is taken out of its parent by the caller. */
  static void remove(Context c, Assembly assembly) {
    if (assembly.isBase()) {
      for (Object part : assembly.components.all(c.tx)) {
        ((CompositePart) part).usedIn.remove(c.tx, assembly);
      }
    } else {
      for (Object child : assembly.children.all(c.tx)) {
        remove(c, (Assembly) child);
      }
    }
    (assembly.isBase() ? c.all.bases : c.all.complexes).remove(c.tx, assembly.id);
    (assembly.isBase() ? c.all.baseIds : c.all.complexIds).give(c.tx, assembly.id);
  }

  /** The tree, and three components for each of its leaves; after all composite parts. */
  static void tree(Context c) {
    c.all.root(assembly(c, c.sizes.levels(), null));
    Index.Cursor<Assembly> bases = c.all.bases.all(c.tx);
    for (Assembly base = bases.next(c.tx); base != null; base = bases.next(c.tx)) {
      for (int k = 0; k < Sizes.FAN_OUT; ++k) {
        int id = 1 + c.random.below(c.sizes.compositeParts());
        link(c, base, c.all.composites.find(c.tx, id));
      }
    }
  }
}
