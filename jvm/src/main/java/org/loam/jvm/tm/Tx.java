package org.loam.jvm.tm;

/**
 * How an attempt of a transaction reaches what threads share. Programs keep it in fields and
 * arrays: a reference, or a cell of the library in its place; a number, and beside it a cell where
 * the library has them.
 *
 * <pre>
 *   private Object next;                            // in the constructor: next = tx.cell(value)
 *   Node next(Tx tx) { return tx.get(next); }
 *   void next(Tx tx, Node value) {
 *     if (tx.hasCells()) tx.set(next, value);
 *     else next = value;
 *   }
 * </pre>
 *
 * <p>This class is the one without cells. A library that has them extends it and overrides all
 * methods. A process uses one of them only, so the compiler knows which method a call means, and of
 * plain fields nothing is left but the access.
 */
public class Tx {
  /** Of plain Java, of locks, and of what the agent instruments. */
  public static final Tx FIELDS = new Tx();

  protected Tx() {}

  public boolean hasCells() {
    return false;
  }

  /** What stands in a field for a reference: itself, or a new cell with it. */
  public Object cell(Object value) {
    return value;
  }

  /** A new cell with a number; null without cells. */
  public Object numberCell(long number) {
    return null;
  }

  /** The reference that stands in a field. */
  @SuppressWarnings("unchecked") // a field says what its references are
  public <T> T get(Object held) {
    return (T) held;
  }

  public void set(Object cell, Object value) {
    throw new UnsupportedOperationException("there are no cells");
  }

  public long number(Object cell) {
    throw new UnsupportedOperationException("there are no cells");
  }

  public void number(Object cell, long value) {
    throw new UnsupportedOperationException("there are no cells");
  }
}
