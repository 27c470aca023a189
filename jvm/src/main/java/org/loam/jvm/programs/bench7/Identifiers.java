package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Ints;
import org.loam.jvm.tm.Tx;

/** Free identifiers: taken from the head of a ring, given back at its tail. */
final class Identifiers {
  private static final int HEAD = 0;
  private static final int COUNT = 1;

  private final Ints ring;
  private final Ints state;

  /** With 1 to count. */
  Identifiers(Tx tx, int count) {
    ring = new Ints(tx, java.util.stream.IntStream.rangeClosed(1, count).toArray());
    state = new Ints(tx, 0, count);
  }

  int total() {
    return ring.length();
  }

  int available(Tx tx) {
    return state.get(tx, COUNT);
  }

  /** The one that would be taken after so many others. */
  int free(Tx tx, int index) {
    return ring.get(tx, (state.get(tx, HEAD) + index) % total());
  }

  /** There must be one. */
  int take(Tx tx) {
    int head = state.get(tx, HEAD);
    int id = ring.get(tx, head);
    state.set(tx, HEAD, (head + 1) % total());
    state.set(tx, COUNT, available(tx) - 1);
    return id;
  }

  void give(Tx tx, int id) {
    int count = available(tx);
    ring.set(tx, (state.get(tx, HEAD) + count) % total(), id);
    state.set(tx, COUNT, count + 1);
  }
}
