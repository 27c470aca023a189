package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/**
 * A node of the tree. One of level 1 ("base") has composite parts, one of a higher level
 * ("complex") has assemblies.
 */
final class Assembly extends Dated {
  final Assembly above; // null for the root
  final int level;
  final Items<Assembly> children; // null on level 1
  final Items<CompositePart> components; // null above

  Assembly(Tx tx, Assembly above, int level, int id, int type, int date) {
    super(tx, id, type, date);
    this.above = above;
    this.level = level;
    children = level == 1 ? null : new Items<>(tx);
    components = level == 1 ? new Items<>(tx) : null;
  }

  boolean isBase() {
    return level == 1;
  }
}
