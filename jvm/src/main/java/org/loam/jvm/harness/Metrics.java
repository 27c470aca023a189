package org.loam.jvm.harness;

import java.util.List;

/** What every program records. */
final class Metrics {
  static final List<Metric> SHARED =
      List.of(
          Metric.ratio("transactions_per_s", "1/s", "higher", "rated_operations", "rated_s"),
          Metric.count("transactions", "neither"),
          Metric.time("elapsed_s", "s", "neither"),
          Metric.count("rated_operations", "neither"),
          Metric.time("rated_s", "s", "neither"),
          Metric.time("thread_cpu_s", "s", "neither"),
          Metric.time("cpu_s", "s", "neither"),
          Metric.time("cpu_ms", "ms", "neither"),
          Metric.ratio("cpu_ms_per_transaction", "ms", "lower", "cpu_ms", "transactions"),
          Metric.time("run_delay_s", "s", "lower"),
          Metric.ratio("gc_share", "1", "lower", "gc_pause_s", "elapsed_s"),
          Metric.ratio("gc_cpu_share", "1", "lower", "gc_cpu_s", "cpu_s"),
          Metric.time("gc_pause_s", "s", "lower"),
          Metric.time("gc_cpu_s", "s", "lower"),
          Metric.count("gc_pauses", "lower"),
          Metric.bytes("allocated_bytes", "lower"),
          Metric.ratio("allocated_bytes_per_s", "B/s", "neither", "allocated_bytes", "elapsed_s"),
          Metric.ratio(
              "allocated_bytes_per_transaction", "B", "lower", "allocated_bytes", "transactions"),
          Metric.bytes("memory_bytes", "neither"),
          Metric.ratio("heap_over_live", "1", "neither", "memory_bytes", "live_bytes"),
          Metric.count("aborts", "lower"),
          Metric.time("warm_up_s", "s", "neither"),
          Metric.count("warm_up_transactions", "neither"),
          Metric.count("warm_up_steady", "higher"));

  private Metrics() {}
}
