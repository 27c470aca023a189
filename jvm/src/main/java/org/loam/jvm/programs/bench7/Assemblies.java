package org.loam.jvm.programs.bench7;

import java.util.ArrayList;
import java.util.List;
import org.loam.jvm.harness.Json;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Program;
import org.loam.jvm.harness.Random;
import org.loam.jvm.programs.bench7.Operation.Category;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;
import org.loam.jvm.word.Unshared;

/** The structure, and what the threads do with it. */
public final class Assemblies implements Program.Instance {
  public static final List<String> MIXES = List.of("read", "read-write", "write");
  private static final double[] READ_SHARES = {0.9, 0.6, 0.1};

  private final Library library;
  private final Sizes sizes;
  private final boolean arrays;
  private final Mix mix;
  private final long operations;
  private final Structure all;
  private final List<Mine> mine = new ArrayList<>();

  /**
   * A thread's random numbers: those that each attempt begins with, and as the last attempt left
   * them.
   */
  @Unshared
  static final class Drawn {
    private Random before;
    private Random after;

    Drawn(Random random) {
      before = random;
      after = random;
    }

    Random begun() {
      after = new Random(before);
      return after;
    }

    /** After the attempt that committed. */
    Random kept() {
      before = after;
      return after;
    }
  }

  /** One operation. */
  private static final class Attempt implements Body {
    private final Structure all;
    private final Sizes sizes;
    private final boolean arrays;
    private final Drawn drawn;
    private Operation chosen;

    Attempt(Structure all, Sizes sizes, boolean arrays, Drawn drawn) {
      this.all = all;
      this.sizes = sizes;
      this.arrays = arrays;
      this.drawn = drawn;
    }

    @Override
    public double run(Tx tx) {
      return chosen.run(new Context(tx, all, drawn.begun(), sizes, arrays));
    }

    @Override
    public boolean onlyReads() {
      return chosen.category.onlyReads();
    }
  }

  /** What belongs to a thread. */
  private static final class Mine {
    final Drawn drawn;
    final Attempt attempt;
    final long[] succeeded = new long[Operation.values().length];
    final long[] failed = new long[succeeded.length];
    final long[] longestNs = new long[succeeded.length];
    long visited;
    long checksum;

    Mine(Structure all, Sizes sizes, boolean arrays, long seed, int thread) {
      drawn = new Drawn(new Random(seed, thread + 1));
      attempt = new Attempt(all, sizes, arrays, drawn);
    }
  }

  /** Makes the roots, or a composite part, or after all of these the tree. */
  private static final class Building implements Body {
    private final Sizes sizes;
    private final boolean arrays;
    private final Drawn drawn;
    private Structure all;
    private boolean isLast;

    Building(Sizes sizes, boolean arrays, Drawn drawn) {
      this.sizes = sizes;
      this.arrays = arrays;
      this.drawn = drawn;
    }

    @Override
    public double run(Tx tx) {
      if (all == null) {
        all = new Structure(tx, sizes, arrays);
        return 0;
      }
      Context context = new Context(tx, all, drawn.begun(), sizes, arrays);
      if (isLast) {
        Build.tree(context);
      } else {
        Build.compositePart(context);
      }
      return 0;
    }
  }

  public Assemblies(Library library, Options options) {
    this.library = library;
    sizes = Sizes.of(options.choice("size"));
    arrays = options.choice("texts").equals("array");
    operations = options.integer("operations");
    String only = options.choice("only");
    mix =
        only.equals("all")
            ? new Mix(
                READ_SHARES[MIXES.indexOf(options.choice("mix"))],
                options.choice("long").equals("on"),
                options.choice("structural").equals("on"))
            : new Mix(Operation.valueOf(only));
    all = built(options.seed());
    for (int i = 0; i < options.threads(); ++i) {
      mine.add(new Mine(all, sizes, arrays, options.seed(), i));
    }
    String problem = check();
    if (!problem.isEmpty()) {
      throw new IllegalStateException("as it was built: " + problem);
    }
  }

  private Structure built(long seed) {
    Worker builder = new Worker(0);
    Drawn drawn = new Drawn(new Random(seed, 0));
    Building building = new Building(sizes, arrays, drawn);
    library.atomically(builder, building);
    for (int i = 0; i < sizes.compositeParts(); ++i) {
      library.atomically(builder, building);
      drawn.kept();
    }
    building.isLast = true;
    library.atomically(builder, building);
    return building.all;
  }

  @Override
  public long units(int thread) {
    return operations;
  }

  @Override
  public int work(Worker worker, int thread) {
    Mine own = mine.get(thread);
    Operation chosen = mix.draw(own.drawn.kept());
    int at = chosen.ordinal();
    own.attempt.chosen = chosen;
    long began = System.nanoTime();
    long result = (long) library.atomically(worker, own.attempt);
    own.longestNs[at] = Math.max(own.longestNs[at], System.nanoTime() - began);
    boolean isFailed = result == Operation.FAILED;
    ++(isFailed ? own.failed : own.succeeded)[at];
    long counted = isFailed ? 0 : result;
    own.visited += counted;
    own.checksum = Random.mix(own.checksum + counted + at);
    return 1;
  }

  @Override
  public String check() {
    Verification verification = new Verification(all, sizes);
    library.atomically(new Worker(0), verification);
    return verification.problem();
  }

  @Override
  public void addTo(Json line) {
    double[] drawn = new double[Category.values().length];
    long succeeded = 0;
    long failed = 0;
    long visited = 0;
    long checksum = 0;
    long longestNs = 0;
    for (Mine own : mine) {
      for (Operation operation : Operation.values()) {
        int at = operation.ordinal();
        drawn[operation.category.ordinal()] += own.succeeded[at] + own.failed[at];
        succeeded += own.succeeded[at];
        failed += own.failed[at];
        longestNs = Math.max(longestNs, own.longestNs[at]);
      }
      visited += own.visited;
      checksum ^= own.checksum;
    }
    double total = succeeded + failed;
    double off = 0;
    for (int i = 0; i < drawn.length; ++i) {
      off = Math.max(off, Math.abs(drawn[i] - total * mix.share(i)));
    }
    line.field("succeeded", succeeded)
        .field("failed", failed)
        .field("visited", visited)
        .field("checksum", checksum >>> 12)
        .field("sample_error", off / total)
        .field("sample_off", (long) off)
        .field("sampled", succeeded + failed)
        .field("longest_ms", longestNs / 1e6)
        .field("atomic_parts", sizes.atomics());
  }

  /** Of each operation, in their order. */
  @Override
  public List<Json> more() {
    int count = Operation.values().length;
    long[] succeeded = new long[count];
    long[] failed = new long[count];
    long[] longestNs = new long[count];
    for (Mine own : mine) {
      for (int i = 0; i < count; ++i) {
        succeeded[i] += own.succeeded[i];
        failed[i] += own.failed[i];
        longestNs[i] = Math.max(longestNs[i], own.longestNs[i]);
      }
    }
    return List.of(
        histogram("succeeded_of_operation", succeeded),
        histogram("failed_of_operation", failed),
        histogram("longest_ns_of_operation", longestNs));
  }

  private static Json histogram(String name, long[] counts) {
    Json json = new Json().object().field("kind", "histogram").field("name", name).array("bounds");
    for (int i = 0; i < counts.length; ++i) {
      json.value(i);
    }
    json.end().array("counts");
    for (long count : counts) {
      json.value(count);
    }
    return json.end().end();
  }
}
