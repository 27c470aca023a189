package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/** An object with a date, which operations change. */
abstract class Dated {
  final int id;
  final int type;
  private int date;
  private final Object dateCell;

  Dated(Tx tx, int id, int type, int date) {
    this.id = id;
    this.type = type;
    this.date = date;
    dateCell = tx.numberCell(date);
  }

  final int date(Tx tx) {
    return tx.hasCells() ? (int) tx.number(dateCell) : date;
  }

  private void date(Tx tx, int value) {
    if (tx.hasCells()) {
      tx.number(dateCell, value);
    } else {
      date = value;
    }
  }

  /** What an operation does that only looks at it. */
  final void touch(Tx tx) {
    date(tx);
  }

  /** Even: one less; odd: one more. */
  final void toggleDate(Tx tx) {
    int now = date(tx);
    date(tx, now % 2 == 0 ? now - 1 : now + 1);
  }
}
