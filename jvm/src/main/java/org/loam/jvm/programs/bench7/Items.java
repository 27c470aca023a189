package org.loam.jvm.programs.bench7;

import java.util.Arrays;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.word.Unshared;

/**
 * A list, as a set (the caller asks first) or as a bag. Each change makes a new array, so that one
 * reference is all that threads share; lists are short.
 */
final class Items<T> {
  private Object items; // an array, which never changes

  Items(Tx tx) {
    items = tx.cell(Copies.NONE);
  }

  /** The items as they are now. The caller must not change the array. */
  Object[] all(Tx tx) {
    return tx.get(items);
  }

  int size(Tx tx) {
    return all(tx).length;
  }

  @SuppressWarnings("unchecked") // add() takes nothing else
  T at(Tx tx, int index) {
    return (T) all(tx)[index];
  }

  void add(Tx tx, T value) {
    put(tx, Copies.with(all(tx), value));
  }

  /** Removes the first of them; returns whether there was one. */
  boolean remove(Tx tx, T value) {
    Object[] now = all(tx);
    int found = 0;
    while (found < now.length && now[found] != value) {
      ++found;
    }
    if (found == now.length) {
      return false;
    }
    put(tx, Copies.without(now, found));
    return true;
  }

  private void put(Tx tx, Object[] value) {
    if (tx.hasCells()) {
      tx.set(items, value);
    } else {
      items = value;
    }
  }

  /** New arrays belong to the transaction alone: their making needs no log. */
  @Unshared
  private static final class Copies {
    static final Object[] NONE = {};

    static Object[] with(Object[] items, Object value) {
      Object[] more = Arrays.copyOf(items, items.length + 1);
      more[items.length] = value;
      return more;
    }

    static Object[] without(Object[] items, int at) {
      Object[] less = new Object[items.length - 1];
      System.arraycopy(items, 0, less, 0, at);
      System.arraycopy(items, at + 1, less, at, less.length - at);
      return less;
    }
  }
}
