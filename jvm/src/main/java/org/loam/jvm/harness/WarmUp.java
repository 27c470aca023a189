package org.loam.jvm.harness;

import java.util.ArrayList;
import java.util.List;
import org.loam.jvm.tm.Library;

/**
 * Work that is not measured, on data of its own, until the compiler has done its part: until the
 * threads' processor time for a transaction stays the same over some rounds, and the compiler is
 * idle in them. The first alone would not do: code that waits for the compiler costs the same all
 * the time. Where single rounds differ by themselves, as on a noisy machine, more rounds must agree
 * in their medians. The collector's time is not in it.
 */
final class WarmUp {
  private static final long ROUND_NS = 50_000_000;
  private static final int STEADY_ROUNDS = 5;
  private static final double STEADY_SPREAD = 1.15;
  private static final int LEVEL_ROUNDS = 10; // before, and after
  private static final double LEVEL_SPREAD = 1.05;
  private static final double IDLE_SHARE = 0.05;
  private static final long LIMIT_NS = 15_000_000_000L;

  final boolean steady;
  final long transactions;
  final double seconds;

  /** What a round cost: processor time for a transaction, and the compiler's over the threads'. */
  record Round(double cost, double compiling) {}

  private WarmUp(boolean steady, long transactions, double seconds) {
    this.steady = steady;
    this.transactions = transactions;
    this.seconds = seconds;
  }

  static WarmUp none() {
    return new WarmUp(false, 0, 0);
  }

  /** Runs at least as long as --warmup-ms says. */
  static WarmUp until(Program program, Library library, Options options)
      throws InterruptedException {
    long started = System.nanoTime();
    List<Round> rounds = new ArrayList<>();
    long transactions = 0;
    Program.Instance instance = program.build(library, options);
    for (; ; ) {
      long compiling = Tasks.compilerCpuNs();
      Team.Sums round = Team.run(instance, options.threads(), ROUND_NS);
      compiling = Math.max(0, Tasks.compilerCpuNs() - compiling);
      transactions += round.transactions;
      if (round.transactions != 0) {
        rounds.add(new Round(round.cpuSecondsPerTransaction(), compiling / 1e9 / round.cpuSeconds));
      }
      if (round.exhausted) {
        instance = null; // the old data goes before the new comes
        instance = program.build(library, options);
      }
      long now = System.nanoTime() - started;
      boolean steady = isSteady(rounds, program.isUneven());
      if ((steady && now >= options.warmupMs() * 1_000_000) || now >= LIMIT_NS) {
        return new WarmUp(steady, transactions, now / 1e9);
      }
    }
  }

  /** uneven: of rounds that differ by themselves only the compiler says something. */
  static boolean isSteady(List<Round> rounds, boolean uneven) {
    return isIdle(rounds, STEADY_ROUNDS) && (uneven || isNarrow(rounds))
        || isIdle(rounds, 2 * LEVEL_ROUNDS) && isLevel(rounds);
  }

  private static boolean isIdle(List<Round> rounds, int count) {
    return rounds.size() >= count
        && last(rounds, count).stream().mapToDouble(Round::compiling).average().orElseThrow()
            <= IDLE_SHARE;
  }

  private static boolean isNarrow(List<Round> rounds) {
    double[] costs = sortedCosts(last(rounds, STEADY_ROUNDS));
    return costs[costs.length - 1] <= STEADY_SPREAD * costs[0];
  }

  private static boolean isLevel(List<Round> rounds) {
    List<Round> both = last(rounds, 2 * LEVEL_ROUNDS);
    double before = median(both.subList(0, LEVEL_ROUNDS));
    double after = median(last(both, LEVEL_ROUNDS));
    return Math.max(before, after) <= LEVEL_SPREAD * Math.min(before, after);
  }

  private static double median(List<Round> rounds) {
    double[] costs = sortedCosts(rounds);
    return (costs[costs.length / 2] + costs[(costs.length - 1) / 2]) / 2;
  }

  private static double[] sortedCosts(List<Round> rounds) {
    return rounds.stream().mapToDouble(Round::cost).sorted().toArray();
  }

  private static List<Round> last(List<Round> rounds, int count) {
    return rounds.subList(rounds.size() - count, rounds.size());
  }
}
