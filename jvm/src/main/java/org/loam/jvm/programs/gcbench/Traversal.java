package org.loam.jvm.programs.gcbench;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Tx;

/** One traversal of a thread's list. The random numbers begin anew in each attempt. */
public final class Traversal implements Body {
  private final Nodes.Outer first;
  private final int[] bounds;
  private final boolean guardsJunk;
  private int seed;
  // What a traversal makes escapes to here, so that the compiler cannot leave it out.
  private Object escaped;

  public Traversal(Nodes.Outer first, int[] bounds, boolean guardsJunk) {
    this.first = first;
    this.bounds = bounds;
    this.guardsJunk = guardsJunk;
  }

  public void begin(int newSeed) {
    seed = newSeed;
    escaped = null;
  }

  public Nodes.Outer first() {
    return first;
  }

  public Object escaped() {
    return escaped;
  }

  public static int xorshift(int state) {
    int next = state;
    next ^= next << 13;
    next ^= next >>> 17;
    return next ^ next << 5;
  }

  @Override
  public double run(Tx tx) {
    final int update = bounds[0];
    final int dead = bounds[1];
    final int held = bounds[2];
    final int insert = bounds[3];
    final int delete = bounds[4];
    final boolean guards = guardsJunk && tx.hasCells();
    double sum = 0;
    int state = seed;
    Object last = null;
    Object keep = null;
    for (Nodes.Outer outer = first; outer != null; outer = outer.next) {
      for (Nodes.Inner node = outer.head; node != null; node = node.next(tx)) {
        state = xorshift(state);
        int event = (state >>> 1) % 100;
        Nodes.Box box = node.box;
        sum += box.number(tx);
        if (event < update) {
          box.number(tx, sum);
        } else if (event < dead) {
          last = new Nodes.Box(tx, sum);
        } else if (event < held) {
          keep = guards ? new Nodes.GuardedJunk(tx, keep, sum) : new Nodes.Junk(keep, sum);
        } else if (event < insert) {
          node.next(tx, new Nodes.Inner(tx, node.next(tx), new Nodes.Box(tx, sum)));
        } else if (event < delete) {
          Nodes.Inner next = node.next(tx);
          if (next != null) {
            node.next(tx, next.next(tx));
          }
        }
      }
    }
    escaped = keep != null ? keep : last;
    return sum;
  }
}
