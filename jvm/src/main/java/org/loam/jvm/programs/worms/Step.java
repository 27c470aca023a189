package org.loam.jvm.programs.worms;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Tx;

/** One step of a worm: an operation on the numbers under its head, then a move by one cell. */
public final class Step implements Body {
  private final Board board;
  private final Scratch own;

  Step(Board board, Scratch own) {
    this.board = board;
    this.own = own;
  }

  /** Returns by how much the sum of the numbers has changed. */
  @Override
  public double run(Tx tx) {
    for (int i = 0; i < own.heads; ++i) {
      own.found(i, board.number(tx, own.under(i)));
    }
    int changed = operate(tx);
    own.moved = move(tx);
    return changed;
  }

  private int operate(Tx tx) {
    return switch (own.kind) {
      case 5 -> put(tx, own.most(), own.average());
      case 6 -> put(tx, own.least(), own.average());
      case 7 -> put(tx, own.median(), own.average());
      case 8 -> put(tx, own.median(), own.number(own.most()));
      case 9 -> put(tx, own.median(), own.number(own.least()));
      case 10 ->
          put(tx, own.most(), own.number(own.least()))
              + put(tx, own.least(), own.number(own.most()));
      case 11 -> permute(tx, true);
      case 12 -> permute(tx, false);
      default -> 0; // sum, average, median, minimum and maximum only read
    };
  }

  private int permute(Tx tx, boolean ascending) {
    int changed = 0;
    for (int i = 0; i < own.heads; ++i) {
      changed += put(tx, i, ascending ? own.sorted(i) : own.number(own.heads - 1 - i));
    }
    return changed;
  }

  private int put(Tx tx, int at, int value) {
    board.number(tx, own.under(at), value);
    return value - own.number(at);
  }

  /**
   * Writes the cells that it leaves and those that it comes to; false if another worm is in the
   * way.
   */
  private boolean move(Tx tx) {
    for (int i = 0; i < own.come(); ++i) {
      Board.Worm there = board.worm(tx, own.comes(i));
      if (there != null && there != own.worm) {
        return false;
      }
    }
    for (int i = 0; i < own.left(); ++i) {
      board.worm(tx, own.leaves(i), null);
    }
    for (int i = 0; i < own.come(); ++i) {
      board.worm(tx, own.comes(i), own.worm);
    }
    return true;
  }
}
