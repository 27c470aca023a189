package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/** A text with a number: of a composite part, or the manual, which belongs to none. */
final class Document {
  final CompositePart part; // null of the manual
  final int id;
  private Object text;

  Document(Tx tx, CompositePart part, int id, Text text) {
    this.part = part;
    this.id = id;
    this.text = tx.cell(text);
  }

  Text text(Tx tx) {
    return tx.get(text);
  }

  void text(Tx tx, Text value) {
    if (tx.hasCells()) {
      tx.set(text, value);
    } else {
      text = value;
    }
  }
}
