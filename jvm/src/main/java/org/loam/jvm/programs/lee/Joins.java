package org.loam.jvm.programs.lee;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.loam.jvm.harness.Random;

/**
 * What is to be routed: a board's size, its pads, and its joins, short ones first. As
 * workloads/managed/lee has them.
 */
public final class Joins {
  /** A place on the board. */
  public record Point(int x, int y) {}

  /** Two places to be joined. */
  public record Join(Point from, Point to) {
    int squaredLength() {
      int x = to.x - from.x;
      int y = to.y - from.y;
      return x * x + y * y;
    }
  }

  final int size;
  final List<Point> pads = new ArrayList<>();
  List<Join> joins = new ArrayList<>();

  private Joins(int size) {
    this.size = size;
  }

  static Joins of(String board, int tracks) {
    Joins made =
        switch (board) {
          case "sparselong" -> sparseLong();
          case "crossing" -> crossing();
          default -> sparseShort();
        };
    if (tracks != 0 && tracks < made.joins.size()) {
      made.joins = made.joins.subList(0, tracks);
    }
    return made;
  }

  private static Joins sparseShort() {
    Joins made = new Joins(600);
    for (int x = 10; x <= 570; x += 20) {
      for (int y = 10; y <= 570; y += 20) {
        made.joins.add(new Join(new Point(x, y), new Point(x, y + 10)));
      }
    }
    return made;
  }

  private static Joins sparseLong() {
    Joins made = new Joins(600);
    for (int x = 10; x <= 570; x += 20) {
      made.pads.add(new Point(x, 10));
      made.pads.add(new Point(x, 590));
      made.joins.add(new Join(new Point(x, 10), new Point(x, 590)));
    }
    return made;
  }

  private static Joins crossing() {
    Joins made = new Joins(200);
    Random random = new Random(1, 0);
    List<Point> free = new ArrayList<>();
    for (int i = 0; i < 24 * 24; ++i) {
      free.add(new Point(4 + i % 24 * 8, 4 + i / 24 * 8));
    }
    for (int i = 0; i < 100; ++i) {
      Point from = made.take(free, random.below(free.size()));
      int best = 0;
      for (int k = 0; k < free.size(); ++k) {
        boolean longer = distance(free.get(k), from) > distance(free.get(best), from);
        if (longer == (i < 10) && !free.get(k).equals(free.get(best))) {
          best = k;
        }
      }
      made.joins.add(new Join(from, made.take(free, best)));
    }
    made.joins.sort(Comparator.comparingInt(Join::squaredLength));
    return made;
  }

  private Point take(List<Point> free, int at) {
    Point point = free.remove(at);
    pads.add(point);
    return point;
  }

  private static int distance(Point a, Point b) {
    return Math.abs(a.x - b.x) + Math.abs(a.y - b.y);
  }
}
