package org.loam.jvm.programs.worms;

import org.loam.jvm.tm.Tx;

/** The cells of the world: a number each, and which worm is there. */
public final class Board {
  /** A worm as the world knows it. */
  public static final class Worm {
    final int number;

    Worm(int number) {
      this.number = number;
    }
  }

  private static final class Node {
    private int number;
    private final Object numberCell;
    private Object worm;

    Node(Tx tx, int number) {
      this.number = number;
      numberCell = tx.numberCell(number);
      worm = tx.cell(null);
    }
  }

  private final Node[] nodes;

  Board(Tx tx, int[] numbers) {
    nodes = new Node[numbers.length];
    for (int i = 0; i < numbers.length; ++i) {
      nodes[i] = new Node(tx, numbers[i]);
    }
  }

  int number(Tx tx, int at) {
    Node node = nodes[at];
    return tx.hasCells() ? (int) tx.number(node.numberCell) : node.number;
  }

  void number(Tx tx, int at, int value) {
    Node node = nodes[at];
    if (tx.hasCells()) {
      tx.number(node.numberCell, value);
    } else {
      node.number = value;
    }
  }

  Worm worm(Tx tx, int at) {
    return tx.get(nodes[at].worm);
  }

  void worm(Tx tx, int at, Worm value) {
    Node node = nodes[at];
    if (tx.hasCells()) {
      tx.set(node.worm, value);
    } else {
      node.worm = value;
    }
  }
}
