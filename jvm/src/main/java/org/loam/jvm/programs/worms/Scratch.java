package org.loam.jvm.programs.worms;

import org.loam.jvm.word.Unshared;

/**
 * A thread's own lists of a step: which cells it is about, and the numbers that it found under the
 * head.
 */
@Unshared
final class Scratch {
  static final int CELLS_MAX = 16 * 16 + 16;

  private final int[] under = new int[CELLS_MAX];
  private final int[] before = new int[CELLS_MAX];
  private final int[] after = new int[CELLS_MAX];
  private final int[] numbers = new int[CELLS_MAX];
  private final int[] sorted = new int[CELLS_MAX];
  int heads;
  int kind;
  boolean moved;
  Board.Worm worm;
  private int left;
  private int come;

  void begin(Board.Worm of, Place from, Place to, int head, int size, int operation) {
    worm = of;
    kind = operation;
    moved = false;
    heads = from.head(head, size, under, 0);
    int leaving = from.all(head, size, before);
    int coming = to.all(head, size, after);
    left = without(before, leaving, after, coming, numbers);
    come = without(after, coming, before, leaving, sorted);
    System.arraycopy(numbers, 0, before, 0, left);
    System.arraycopy(sorted, 0, after, 0, come);
  }

  /** The cells of one list that the other does not have. */
  private static int without(int[] cells, int count, int[] others, int otherCount, int[] kept) {
    int keeps = 0;
    for (int i = 0; i < count; ++i) {
      boolean isThere = false;
      for (int k = 0; k < otherCount && !isThere; ++k) {
        isThere = others[k] == cells[i];
      }
      if (!isThere) {
        kept[keeps++] = cells[i];
      }
    }
    return keeps;
  }

  int left() {
    return left;
  }

  int come() {
    return come;
  }

  int leaves(int i) {
    return before[i];
  }

  int comes(int i) {
    return after[i];
  }

  int under(int i) {
    return under[i];
  }

  int number(int i) {
    return numbers[i];
  }

  int sorted(int i) {
    return sorted[i];
  }

  void found(int i, int number) {
    numbers[i] = number;
    int at = i;
    for (; at > 0 && sorted[at - 1] > number; --at) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = number;
  }

  int average() {
    int sum = 0;
    for (int i = 0; i < heads; ++i) {
      sum += numbers[i];
    }
    return sum / heads;
  }

  /** The first place of a number. */
  int at(int number) {
    int at = 0;
    while (numbers[at] != number) {
      ++at;
    }
    return at;
  }

  int most() {
    return at(sorted[heads - 1]);
  }

  int least() {
    return at(sorted[0]);
  }

  int median() {
    return at(sorted[heads / 2]);
  }
}
