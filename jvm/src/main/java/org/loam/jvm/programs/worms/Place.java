package org.loam.jvm.programs.worms;

/**
 * Where a worm is: body 0 is behind its head. It belongs to one thread and changes outside of
 * transactions.
 */
final class Place {
  final int[] bodyX;
  final int[] bodyY;
  int directionX;
  int directionY = 1;

  Place(int body) {
    bodyX = new int[body];
    bodyY = new int[body];
  }

  void copy(Place other) {
    System.arraycopy(other.bodyX, 0, bodyX, 0, bodyX.length);
    System.arraycopy(other.bodyY, 0, bodyY, 0, bodyY.length);
    directionX = other.directionX;
    directionY = other.directionY;
  }

  /** From another place by one cell; turn: 0 ahead, 1 right, 2 left. */
  void moved(Place from, int turn) {
    int x = from.directionX;
    int y = from.directionY;
    directionX = turn == 0 ? x : turn == 1 ? y : -y;
    directionY = turn == 0 ? y : turn == 1 ? -x : x;
    for (int i = bodyX.length - 1; i != 0; --i) {
      bodyX[i] = from.bodyX[i - 1];
      bodyY[i] = from.bodyY[i - 1];
    }
    bodyX[0] = from.bodyX[0] + directionX;
    bodyY[0] = from.bodyY[0] + directionY;
  }

  /**
   * The cells of the head: row i ahead of the body has 2 * (head - 1 - i) + 1 of them. Returns how
   * many there are.
   */
  int head(int head, int size, int[] cells, int from) {
    int count = from;
    for (int i = 0; i < head; ++i) {
      for (int k = -(head - 1 - i); k <= head - 1 - i; ++k) {
        cells[count++] =
            index(
                bodyX[0] + directionX * (i + 1) - directionY * k,
                bodyY[0] + directionY * (i + 1) + directionX * k,
                size);
      }
    }
    return count;
  }

  /** Body and head. */
  int all(int head, int size, int[] cells) {
    for (int i = 0; i < bodyX.length; ++i) {
      cells[i] = index(bodyX[i], bodyY[i], size);
    }
    return head(head, size, cells, bodyX.length);
  }

  private static int index(int x, int y, int size) {
    return Math.floorMod(y, size) * size + Math.floorMod(x, size);
  }
}
