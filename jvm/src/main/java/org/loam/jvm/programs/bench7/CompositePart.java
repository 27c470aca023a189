package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/** A document, and a graph of atomic parts. Base assemblies use it. */
final class CompositePart extends Dated {
  final Document document;
  final Index<AtomicPart> parts; // by id
  final Items<Assembly> usedIn; // a bag of base assemblies
  private AtomicPart root;

  CompositePart(Tx tx, int id, int type, int date, Text text) {
    super(tx, id, type, date);
    document = new Document(tx, this, id, text);
    parts = new Index<>(tx);
    usedIn = new Items<>(tx);
  }

  AtomicPart root() {
    return root;
  }

  /** By the transaction that makes it, before anybody else sees it: it needs no cell. */
  void root(AtomicPart first) {
    root = first;
  }
}
