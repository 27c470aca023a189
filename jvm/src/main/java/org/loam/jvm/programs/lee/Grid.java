package org.loam.jvm.programs.lee;

import org.loam.jvm.tm.Ints;
import org.loam.jvm.tm.Tx;

/**
 * Two layers of numbers: the board that threads share, or the numbers of a wave. As arrays of
 * arrays of arrays, as one array in row-major order, or plain, for what a thread has to itself.
 */
abstract class Grid {
  static final int EMPTY = 0;
  static final int BESIDE_PAD = 1;
  static final int PAD = 5120;
  static final int VIA = 6000;
  static final int FORCED_VIA = 6001;
  static final int TRACK = 8192;

  abstract int get(Tx tx, int x, int y, int z);

  abstract void set(Tx tx, int x, int y, int z, int value);

  /** All are 0. */
  static Grid of(Tx tx, int size, boolean rowMajor) {
    return rowMajor ? new RowMajor(tx, size) : new Nested(tx, size);
  }

  private static final class RowMajor extends Grid {
    private final int size;
    private final Ints numbers;

    RowMajor(Tx tx, int size) {
      this.size = size;
      numbers = new Ints(tx, new int[size * size * 2]);
    }

    @Override
    int get(Tx tx, int x, int y, int z) {
      return numbers.get(tx, (x * size + y) * 2 + z);
    }

    @Override
    void set(Tx tx, int x, int y, int z, int value) {
      numbers.set(tx, (x * size + y) * 2 + z, value);
    }
  }

  private static final class Nested extends Grid {
    private final Ints[][] columns;

    Nested(Tx tx, int size) {
      columns = new Ints[size][size];
      for (Ints[] column : columns) {
        for (int y = 0; y < size; ++y) {
          column[y] = new Ints(tx, 0, 0);
        }
      }
    }

    @Override
    int get(Tx tx, int x, int y, int z) {
      return columns[x][y].get(tx, z);
    }

    @Override
    void set(Tx tx, int x, int y, int z, int value) {
      columns[x][y].set(tx, z, value);
    }
  }

  /** The numbers of a thread's own wave. */
  static final class Own extends Grid {
    private final Wave wave;

    Own(Wave wave) {
      this.wave = wave;
    }

    @Override
    int get(Tx tx, int x, int y, int z) {
      return wave.number(x, y, z);
    }

    @Override
    void set(Tx tx, int x, int y, int z, int value) {
      wave.number(x, y, z, value);
    }
  }
}
