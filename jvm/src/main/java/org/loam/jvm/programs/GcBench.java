package org.loam.jvm.programs;

import java.util.List;
import org.loam.jvm.harness.BadInput;
import org.loam.jvm.harness.Json;
import org.loam.jvm.harness.Metric;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.harness.Program;
import org.loam.jvm.programs.gcbench.Nodes;
import org.loam.jvm.programs.gcbench.Traversal;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/**
 * Each thread walks a list of lists of its own, and at every node updates, allocates, inserts or
 * deletes. One traversal is one transaction. The same specification and the same seeds as
 * workloads/managed/gcbench.cpp, so that checksums are the same.
 */
public final class GcBench implements Program {
  private static final List<String> SHARES =
      List.of("update_percent", "dead_percent", "held_percent", "insert_percent", "delete_percent");

  @Override
  public String name() {
    return "gcbench";
  }

  @Override
  public String summary() {
    return "private lists of lists, walked by transactions that allocate";
  }

  @Override
  public List<Parameter> parameters() {
    return List.of(
        Parameter.integer(
                "size",
                400,
                1,
                4000,
                "1",
                "outer elements, and inner ones of each: size * size nodes")
            .called("size\u00a0{}"),
        Parameter.integer(
            "operations", 20, 1, 1 << 30, "1", "traversals of each thread; one is a transaction"),
        Parameter.integer("update_percent", 5, 0, 100, "%", "of the nodes: write")
            .called("{}\u00a0% updates"),
        Parameter.integer("dead_percent", 15, 0, 100, "%", "allocate what is dead at once"),
        Parameter.integer("held_percent", 65, 0, 100, "%", "allocate what is dead at commit"),
        Parameter.integer("insert_percent", 5, 0, 100, "%", "insert a node"),
        Parameter.integer("delete_percent", 5, 0, 100, "%", "delete a node"),
        Parameter.choice(
            "junk",
            List.of("plain", "transactional"),
            "whether objects that die at commit are the library's cells"));
  }

  @Override
  public List<Metric> metrics() {
    return List.of(Metric.count("nodes", "neither"), Metric.count("checksum", "neither"));
  }

  @Override
  public void check(Options options) {
    if (bounds(options)[SHARES.size() - 1] > 100) {
      throw new BadInput("-p *_percent", "", "percentages of more than 100 in sum", "");
    }
  }

  @Override
  public boolean shares() {
    return false;
  }

  @Override
  public Instance build(Library library, Options options) {
    return new Lists(library, options);
  }

  private static int[] bounds(Options options) {
    int[] bounds = new int[SHARES.size()];
    int sum = 0;
    for (int i = 0; i < bounds.length; ++i) {
      sum += options.integer(SHARES.get(i));
      bounds[i] = sum;
    }
    return bounds;
  }

  private static final class Lists implements Instance {
    private final Library library;
    private final int size;
    private final long operations;
    private final int[] bounds;
    private final Traversal[] traversals;
    private final double[] sums;
    private final int[] seeds;
    private long nodesAfter;
    private long checksum;

    Lists(Library library, Options options) {
      this.library = library;
      size = options.integer("size");
      operations = options.integer("operations");
      bounds = bounds(options);
      traversals = new Traversal[options.threads()];
      sums = new double[options.threads()];
      seeds = new int[options.threads()];
      boolean guardsJunk = options.choice("junk").equals("transactional");
      for (int i = 0; i < traversals.length; ++i) {
        Building building = new Building(size);
        library.atomically(new Worker(i), building);
        traversals[i] = new Traversal(building.made, bounds, guardsJunk);
        seeds[i] = (int) options.seed() * (int) 2654435761L + i + 1;
      }
    }

    @Override
    public long units(int thread) {
      return operations;
    }

    @Override
    public int work(Worker worker, int thread) {
      seeds[thread] = Traversal.xorshift(seeds[thread] | 1);
      traversals[thread].begin(seeds[thread]);
      sums[thread] += library.atomically(worker, traversals[thread]);
      return 1;
    }

    @Override
    public String check() {
      double expected = (double) size * size;
      boolean stays = bounds[3] - bounds[2] == bounds[4] - bounds[3];
      for (int i = 0; i < traversals.length; ++i) {
        Counting counting = new Counting(traversals[i].first(), size);
        library.atomically(new Worker(i), counting);
        if (counting.nodes == 0) {
          return "a list is broken";
        }
        if (stays && Math.abs(counting.nodes - expected) > 0.1 * expected + 100) {
          return "insertions and deletions are out of balance";
        }
        nodesAfter += counting.nodes;
        checksum ^= Long.rotateLeft(Double.doubleToRawLongBits(sums[i]), i % 64);
      }
      return "";
    }

    @Override
    public void addTo(Json line) {
      line.field("nodes", nodesAfter).field("checksum", checksum >>> 12);
    }
  }

  /** Makes a list. */
  private static final class Building implements Body {
    private final int size;
    private Nodes.Outer made;

    Building(int size) {
      this.size = size;
    }

    @Override
    public double run(Tx tx) {
      Nodes.Outer outer = null;
      for (int i = 0; i < size; ++i) {
        Nodes.Inner inner = null;
        for (int k = 0; k < size; ++k) {
          inner = new Nodes.Inner(tx, inner, new Nodes.Box(tx, 1.0 / (1 + k)));
        }
        outer = new Nodes.Outer(outer, inner);
      }
      made = outer;
      return 0;
    }
  }

  /** Counts the nodes of a list; 0 if something in it is wrong. */
  private static final class Counting implements Body {
    private final Nodes.Outer first;
    private final int size;
    private long nodes;

    Counting(Nodes.Outer first, int size) {
      this.first = first;
      this.size = size;
    }

    @Override
    public double run(Tx tx) {
      long found = 0;
      long outers = 0;
      long most = 4 * ((long) size * size + 100);
      nodes = 0;
      for (Nodes.Outer outer = first; outer != null; outer = outer.next) {
        ++outers;
        for (Nodes.Inner node = outer.head; node != null; node = node.next(tx)) {
          Nodes.Box box = node.box;
          if (box == null || Double.isNaN(box.number(tx)) || ++found > most) {
            return 0;
          }
        }
      }
      nodes = outers == size ? found : 0;
      return nodes;
    }
  }
}
