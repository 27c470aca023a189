package org.loam.jvm.harness;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.loam.jvm.tm.Library;

/** One measured run with its records. */
final class Run {
  static final int SCHEMA = 2;
  private static final int NOT_VERIFIED = 3;

  private final Library library;
  private final Options options;
  private final Machine machine;

  Run(Library library, Options options, Machine machine) {
    this.library = library;
    this.options = options;
    this.machine = machine;
  }

  /** Returns the status with which the process ends. */
  int run() throws IOException, InterruptedException {
    refuseUnsynchronised();
    library.configure(options);
    try (OutputStream records = open(options.records())) {
      write(records, begin());
      WarmUp warmUp =
          options.choice("warm_up").equals("none")
              ? WarmUp.none()
              : WarmUp.until(options.program, library, options);
      Program.Instance instance = options.program.build(library, options);
      System.gc();
      Collections before = Collections.now();
      Team.Sums sums = Team.run(instance, options.threads(), 0);
      Collections after = Collections.now();
      String problem = instance.check();
      write(records, Usage.sinceStart().record());
      write(records, iteration(instance, warmUp, sums, before, after));
      for (Json line : instance.more()) {
        write(records, line);
      }
      write(
          records,
          new Json()
              .object()
              .field("kind", "end")
              .field("verified", problem.isEmpty())
              .field("message", problem)
              .field("live_blocks_delta", 0)
              .end());
      return problem.isEmpty() ? 0 : NOT_VERIFIED;
    }
  }

  /** Bytes that are live once the program's data has been made. */
  long live() {
    library.configure(options);
    Program.Instance instance = options.program.build(library, options);
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    long used = runtime.totalMemory() - runtime.freeMemory();
    java.lang.ref.Reference.reachabilityFence(instance);
    return used;
  }

  private void refuseUnsynchronised() {
    if (options.threads() > 1 && options.program.shares() && !library.synchronises()) {
      throw new BadInput(
          "--threads",
          Integer.toString(options.threads()),
          library.name() + " synchronises nothing, and the threads of this program share objects",
          "use one thread, or jvm-lock");
    }
  }

  private Json begin() {
    Json json =
        new Json()
            .object()
            .field("kind", "begin")
            .field("schema", SCHEMA)
            .field("workload", options.program.name())
            .field("sync", library.name())
            .field("threads", options.threads())
            .field("seed", new java.math.BigInteger(Long.toUnsignedString(options.seed())))
            .field("blame", false)
            .field("warmup_ms", options.warmupMs())
            .object("parameters");
    options.values().forEach(json::field);
    json.end()
        .field("preset", machine.preset())
        .field("compiler", Machine.compiler())
        .field("build_id", "")
        .array("cpus");
    cpus().forEach(json::value);
    return json.end().end();
  }

  private Json iteration(
      Program.Instance instance,
      WarmUp warmUp,
      Team.Sums sums,
      Collections before,
      Collections after) {
    double pause = after.pauseSeconds() - before.pauseSeconds();
    double collectorCpu = after.cpuSeconds() - before.cpuSeconds();
    double cpu = sums.cpuSeconds + collectorCpu;
    double transactions = sums.transactions;
    Json json =
        new Json()
            .object()
            .field("kind", "iteration")
            .field("index", 0)
            .field("elapsed_s", sums.elapsedSeconds)
            .field("transactions", sums.transactions)
            .field("transactions_per_s", transactions / sums.elapsedSeconds)
            .field("rated_operations", sums.transactions)
            .field("rated_s", sums.elapsedSeconds)
            .field("rated_by", "run")
            .field("thread_cpu_s", sums.cpuSeconds)
            .field("cpu_s", cpu)
            .field("cpu_ms", cpu * 1e3)
            .field("cpu_ms_per_transaction", cpu * 1e3 / transactions)
            .field("run_delay_s", sums.runDelaySeconds)
            .field("gc_pause_s", pause)
            .field("gc_share", pause / sums.elapsedSeconds)
            .field("gc_cpu_s", collectorCpu)
            .field("gc_cpu_share", collectorCpu / cpu)
            .field("gc_pauses", after.pauses() - before.pauses())
            .field("allocated_bytes", sums.allocatedBytes)
            .field("allocated_bytes_per_s", sums.allocatedBytes / sums.elapsedSeconds)
            .field("allocated_bytes_per_transaction", sums.allocatedBytes / transactions)
            .field("memory_bytes", machine.heapBytes())
            .field("aborts", sums.aborts)
            .field("warm_up_s", warmUp.seconds)
            .field("warm_up_transactions", warmUp.transactions)
            .field("warm_up_steady", warmUp.steady ? 1 : 0);
    if (machine.liveBytes() != 0) {
      json.field("live_bytes", machine.liveBytes())
          .field("heap_over_live", (double) machine.heapBytes() / machine.liveBytes());
    }
    instance.addTo(json);
    return json.end();
  }

  /**
   * Where records go: 1 is the descriptor that the process inherited, which only records are
   * written to.
   */
  private static OutputStream open(String records) throws IOException {
    if (records.equals("1")) {
      System.setOut(System.err);
      return new FileOutputStream(FileDescriptor.out);
    }
    try {
      return new FileOutputStream(records, true);
    } catch (IOException problem) {
      throw new BadInput(
          "--records", records, "cannot be opened for writing", problem.getMessage());
    }
  }

  private static void write(OutputStream records, Json line) throws IOException {
    records.write((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /** The processors on which this process may run; threads are not pinned to one. */
  private static List<Integer> cpus() {
    List<Integer> all = new ArrayList<>();
    for (String part : allowed().split(",")) {
      String[] ends = part.strip().split("-");
      for (int i = Integer.parseInt(ends[0]); i <= Integer.parseInt(ends[ends.length - 1]); ++i) {
        all.add(i);
      }
    }
    return all;
  }

  private static String allowed() {
    try {
      return Files.readAllLines(Path.of("/proc/self/status")).stream()
          .filter(line -> line.startsWith("Cpus_allowed_list:"))
          .findFirst()
          .orElse("Cpus_allowed_list: 0")
          .substring("Cpus_allowed_list:".length());
    } catch (IOException problem) {
      throw new java.io.UncheckedIOException(problem);
    }
  }
}
