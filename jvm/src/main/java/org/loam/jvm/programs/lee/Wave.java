package org.loam.jvm.programs.lee;

import java.util.Arrays;
import org.loam.jvm.word.Unshared;

/**
 * A thread's own: the cells that the wave comes from and goes to, and the track back. In the
 * variants that allocate outside of transactions also the wave's numbers; in the others an object
 * for each step of the wave.
 */
@Unshared
final class Wave {
  /** A step of the wave, as the variants that allocate have it. */
  @Unshared
  private static final class Item {
    final Item next;
    final int at;

    Item(Item next, int at) {
      this.next = next;
      this.at = at;
    }
  }

  final int size;
  private final int[] numbers; // null where the numbers are made in the transaction
  private Item items;
  private int[] now = new int[1024];
  private int[] next = new int[1024];
  private int nowCount;
  private int nextCount;
  private int[] path = new int[1024];
  private int pathCount;

  Wave(int size, boolean hasNumbers) {
    this.size = size;
    numbers = hasNumbers ? new int[size * size * 2] : null;
  }

  boolean hasNumbers() {
    return numbers != null;
  }

  int at(int x, int y, int z) {
    return (x * size + y) * 2 + z;
  }

  boolean isInside(int x, int y) {
    return x > 0 && y > 0 && x < size - 1 && y < size - 1;
  }

  void begin() {
    items = null;
    nowCount = 0;
    nextCount = 0;
    pathCount = 0;
  }

  /** All numbers at once, which is not the transaction's business. */
  void fill(int number) {
    Arrays.fill(numbers, number);
  }

  int number(int x, int y, int z) {
    return numbers[at(x, y, z)];
  }

  void number(int x, int y, int z, int value) {
    numbers[at(x, y, z)] = value;
  }

  void push(int x, int y, int z) {
    int at = at(x, y, z);
    if (numbers == null) {
      items = new Item(items, at);
    }
    if (nextCount == next.length) {
      next = Arrays.copyOf(next, 2 * nextCount);
    }
    next[nextCount++] = at;
  }

  /** What was pushed becomes what is looked at; returns how much that is. */
  int turn() {
    int[] other = now;
    now = next;
    next = other;
    nowCount = nextCount;
    nextCount = 0;
    return nowCount;
  }

  int front(int i) {
    return now[i];
  }

  /** After the transaction: its objects are garbage. */
  void forget() {
    items = null;
  }

  void step(int x, int y, int z) {
    if (pathCount == path.length) {
      path = Arrays.copyOf(path, 2 * pathCount);
    }
    path[pathCount++] = at(x, y, z);
  }

  void giveUp() {
    pathCount = 0;
  }

  int[] path() {
    return Arrays.copyOf(path, pathCount);
  }
}
