package org.loam.jvm.tm;

/** Integers that threads share: an array, or as many cells. */
public final class Ints {
  private final int[] numbers; // null with cells
  private final Object[] cells; // null without

  /** The array belongs to the new object from here on. */
  public Ints(Tx tx, int... values) {
    if (!tx.hasCells()) {
      numbers = values;
      cells = null;
      return;
    }
    numbers = null;
    cells = new Object[values.length];
    for (int i = 0; i < values.length; ++i) {
      cells[i] = tx.numberCell(values[i]);
    }
  }

  public int length() {
    return numbers != null ? numbers.length : cells.length;
  }

  public int get(Tx tx, int at) {
    return tx.hasCells() ? (int) tx.number(cells[at]) : numbers[at];
  }

  public void set(Tx tx, int at, int value) {
    if (tx.hasCells()) {
      tx.number(cells[at], value);
    } else {
      numbers[at] = value;
    }
  }
}
