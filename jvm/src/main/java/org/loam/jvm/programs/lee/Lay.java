package org.loam.jvm.programs.lee;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Tx;

/**
 * Lays one track by Lee's algorithm: a wave from one end until it reaches the other, then back
 * along falling numbers. As workloads/managed/lee/router.hpp does it.
 */
public final class Lay implements Body {
  static final int UNVISITED = 10000;

  private final Grid board;
  private final Wave wave;
  private final boolean rowMajor;
  private final Grid own; // null where the wave's numbers are made in the transaction
  private Joins.Join join;

  Lay(Grid board, Wave wave, boolean rowMajor) {
    this.board = board;
    this.wave = wave;
    this.rowMajor = rowMajor;
    own = wave.hasNumbers() ? new Grid.Own(wave) : null;
  }

  void begin(Joins.Join of) {
    join = of;
  }

  /** Returns 1 if the join was laid. */
  @Override
  public double run(Tx tx) {
    Joins.Join of = join;
    wave.begin();
    Grid numbers = unvisited(tx);
    if (!expand(tx, numbers, of.from().x(), of.from().y(), of.to().x(), of.to().y())) {
      return 0;
    }
    return backtrack(tx, numbers, of.from().x(), of.from().y(), of.to().x(), of.to().y()) ? 1 : 0;
  }

  private Grid unvisited(Tx tx) {
    if (own != null) {
      wave.fill(UNVISITED);
      return own;
    }
    Grid made = Grid.of(tx, wave.size, rowMajor);
    for (int x = 0; x < wave.size; ++x) {
      for (int y = 0; y < wave.size; ++y) {
        made.set(tx, x, y, 0, UNVISITED);
        made.set(tx, x, y, 1, UNVISITED);
      }
    }
    return made;
  }

  private boolean expand(Tx tx, Grid numbers, int fromX, int fromY, int toX, int toY) {
    for (int z = 0; z < 2; ++z) {
      numbers.set(tx, fromX, fromY, z, 1);
      wave.push(fromX, fromY, z);
    }
    int extra = 50;
    for (int count = wave.turn(); count != 0; count = wave.turn()) {
      for (int i = 0; i < count; ++i) {
        spread(tx, numbers, wave.front(i), toX, toY);
        boolean on0 = numbers.get(tx, toX, toY, 0) != UNVISITED;
        boolean on1 = numbers.get(tx, toX, toY, 1) != UNVISITED;
        if (on0 != on1) {
          extra = 100;
        }
        if (on0 && on1 || extra == 0 && (on0 || on1)) {
          return true;
        }
        --extra;
      }
    }
    return numbers.get(tx, toX, toY, 0) != UNVISITED || numbers.get(tx, toX, toY, 1) != UNVISITED;
  }

  private void spread(Tx tx, Grid numbers, int from, int toX, int toY) {
    int z = from & 1;
    int x = (from >> 1) / wave.size;
    int y = (from >> 1) % wave.size;
    int value = numbers.get(tx, x, y, z);
    reach(tx, numbers, x, y + 1, z, value, toX, toY);
    reach(tx, numbers, x + 1, y, z, value, toX, toY);
    reach(tx, numbers, x, y - 1, z, value, toX, toY);
    reach(tx, numbers, x - 1, y, z, value, toX, toY);
    int other = 1 - z;
    if (numbers.get(tx, x, y, other) > value && board.get(tx, x, y, other) + 1 < Grid.PAD) {
      numbers.set(tx, x, y, other, value);
      wave.push(x, y, other);
    }
  }

  private void reach(Tx tx, Grid numbers, int x, int y, int z, int value, int toX, int toY) {
    if (!wave.isInside(x, y)) {
      return;
    }
    boolean goal = x == toX && y == toY;
    int weight = board.get(tx, x, y, z) + 1;
    int there = numbers.get(tx, x, y, z);
    if (goal) {
      if (there > value + 1) {
        numbers.set(tx, x, y, z, value + 1);
      }
    } else if (there > value + weight && weight < Grid.PAD) {
      numbers.set(tx, x, y, z, value + weight);
      wave.push(x, y, z);
    }
  }

  /**
   * Layer 0 prefers to go along x, layer 1 along y: the place of a direction's number is its
   * preference.
   */
  private static int stepX(int layer, int direction) {
    return direction >> 1 == layer ? (direction & 1) * 2 - 1 : 0;
  }

  private static int stepY(int layer, int direction) {
    return direction >> 1 == layer ? 0 : (direction & 1) * 2 - 1;
  }

  private int least(Tx tx, Grid numbers, int x, int y, int order, int layer, int below) {
    int best = 4;
    for (int i = 0; i < 4; ++i) {
      int toX = x + stepX(order, i);
      int toY = y + stepY(order, i);
      if (wave.isInside(toX, toY)) {
        int number = numbers.get(tx, toX, toY, layer);
        if (number < below && number != UNVISITED) {
          best = i;
          below = number;
        }
      }
    }
    return best;
  }

  private boolean backtrack(Tx tx, Grid numbers, int fromX, int fromY, int toX, int toY) {
    int z = Math.abs(toX - fromX) > Math.abs(toY - fromY) ? 0 : 1;
    if (numbers.get(tx, toX, toY, z) == UNVISITED) {
      z = 1 - z;
    }
    int x = toX;
    int y = toY;
    int sinceVia = 0;
    wave.step(x, y, z);
    while (x != fromX || y != fromY) {
      int here = numbers.get(tx, x, y, z);
      int chosen = least(tx, numbers, x, y, z, z, here);
      boolean advances = chosen < 4;
      int across = numbers.get(tx, x, y, 1 - z);
      boolean continues = across <= here && least(tx, numbers, x, y, z, 1 - z, across) < 4;
      boolean far = sinceVia > 15 && Math.hypot(x - fromX, y - fromY) > 15;
      if (continues && (!advances || chosen > 1 && far)) {
        int via = advances ? Grid.VIA : Grid.FORCED_VIA;
        write(tx, x, y, 0, via);
        write(tx, x, y, 1, via);
        sinceVia = 0;
        z = 1 - z;
        wave.step(x, y, z);
        continue;
      }
      if (!advances) {
        wave.giveUp();
        return true;
      }
      write(tx, x, y, z, Grid.TRACK);
      int nextX = x + stepX(z, chosen);
      y += stepY(z, chosen);
      x = nextX;
      ++sinceVia;
      wave.step(x, y, z);
    }
    return true;
  }

  private void write(Tx tx, int x, int y, int z, int number) {
    if (board.get(tx, x, y, z) < Grid.PAD) {
      board.set(tx, x, y, z, number);
    }
  }
}
