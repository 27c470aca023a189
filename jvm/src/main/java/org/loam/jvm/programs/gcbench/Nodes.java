package org.loam.jvm.programs.gcbench;

import org.loam.jvm.tm.Tx;

/** The objects of GCBench. What never changes is final: no library needs to guard it. */
public final class Nodes {
  private Nodes() {}

  /** A number as an object of its own. */
  public static final class Box {
    private double number;
    private final Object cell; // with the number's bits

    public Box(Tx tx, double number) {
      this.number = number;
      cell = tx.numberCell(Double.doubleToRawLongBits(number));
    }

    public double number(Tx tx) {
      return tx.hasCells() ? Double.longBitsToDouble(tx.number(cell)) : number;
    }

    void number(Tx tx, double value) {
      if (tx.hasCells()) {
        tx.number(cell, Double.doubleToRawLongBits(value));
      } else {
        number = value;
      }
    }
  }

  /** An inner element. */
  public static final class Inner {
    public final Box box;
    private Object next;

    public Inner(Tx tx, Inner next, Box box) {
      this.next = tx.cell(next);
      this.box = box;
    }

    public Inner next(Tx tx) {
      return tx.get(next);
    }

    void next(Tx tx, Inner value) {
      if (tx.hasCells()) {
        tx.set(next, value);
      } else {
        next = value;
      }
    }
  }

  /**
   * An outer element: its list of inner ones. It never changes: the first of a list is not deleted.
   */
  public static final class Outer {
    public final Outer next;
    public final Inner head;

    public Outer(Outer next, Inner head) {
      this.next = next;
      this.head = head;
    }
  }

  /** What a transaction holds until it commits, and no library guards. */
  static final class Junk {
    final Object next;
    final double number;

    Junk(Object next, double number) {
      this.next = next;
      this.number = number;
    }
  }

  /** The same, in cells of the library. */
  static final class GuardedJunk {
    final Object next;
    final Object number;

    GuardedJunk(Tx tx, Object next, double number) {
      this.next = tx.cell(next);
      this.number = tx.numberCell(Double.doubleToRawLongBits(number));
    }
  }
}
