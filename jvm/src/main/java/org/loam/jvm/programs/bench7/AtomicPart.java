package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/** A node of a composite part's graph. x and y change; the graph stays as it was made. */
final class AtomicPart extends Dated {
  /**
   * Never changes. A connection is two of them: one in source.to, one the other way round in
   * destination.from.
   */
  record Connection(AtomicPart source, AtomicPart destination, int type, int length) {}

  final CompositePart part;
  final Items<Connection> to;
  final Items<Connection> from;
  private int x;
  private final Object xCell;
  private int y;
  private final Object yCell;

  AtomicPart(Tx tx, CompositePart part, int id, int type, int date, int x) {
    super(tx, id, type, date);
    this.part = part;
    to = new Items<>(tx);
    from = new Items<>(tx);
    this.x = x;
    xCell = tx.numberCell(x);
    y = x + 1;
    yCell = tx.numberCell(x + 1);
  }

  int x(Tx tx) {
    return tx.hasCells() ? (int) tx.number(xCell) : x;
  }

  int y(Tx tx) {
    return tx.hasCells() ? (int) tx.number(yCell) : y;
  }

  void exchangePlaces(Tx tx) {
    int oldX = x(tx);
    int oldY = y(tx);
    if (tx.hasCells()) {
      tx.number(xCell, oldY);
      tx.number(yCell, oldX);
    } else {
      x = oldY;
      y = oldX;
    }
  }
}
