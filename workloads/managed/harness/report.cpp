#include "workloads/managed/harness/report.hpp"

#include "runtime/gc/logs/entries.hpp"

#include <algorithm>
#include <cmath>

namespace loam::workloads::managed {
namespace {

constexpr double kUsPerNs = 1e-3, kMsPerS = 1e3;
constexpr std::size_t kBuckets = 36;  // up to 34 s

// Of bucket i of gc::Durations: values of i bits.
std::array<std::uint64_t, kBuckets> difference(const gc::Durations& before, const gc::Durations& after) {
  std::array<std::uint64_t, kBuckets> counts{};
  for (std::size_t i = 0; i < after.counts().size(); ++i)
    counts[std::min(i, kBuckets - 1)] += after.counts()[i] - before.counts()[i];
  return counts;
}

// The upper bound of the bucket in which the value of this rank lies.
double quantile_us(const std::array<std::uint64_t, kBuckets>& counts, double part, double max_us) {
  std::uint64_t total = 0, seen = 0;
  for (const auto count : counts) total += count;
  for (std::size_t i = 0; i < kBuckets; ++i)
    if ((seen += counts[i]) >= std::ceil(part * static_cast<double>(total)) && seen != 0)
      return std::min(max_us, std::ldexp(1.0, static_cast<int>(i)) * kUsPerNs);
  return 0;
}

}  // namespace

base::JsonLine& add_managed(Recorder& recorder, const Team& team, const Team::Rate& rate, std::uint64_t transactions,
                            const Counts& before, const Counts& after, std::size_t memory_bytes,
                            std::size_t live_bytes) {
  const gc::Statistics &a = before.heap, &b = after.heap;
  const gc::TxStatistics &ta = before.transactions, &tb = after.transactions;
  const double pause_s = static_cast<double>(b.pauses.sum_ns() - a.pauses.sum_ns()) * kSecondsPerNs;
  const double cpu_s = static_cast<double>(b.collector_cpu_ns - a.collector_cpu_ns) * kSecondsPerNs;
  const double thread_cpu_s = team.thread_cpu_s(), elapsed_s = team.elapsed_s();
  const auto pauses = difference(a.pauses, b.pauses);
  const double pause_max_us = static_cast<double>(b.pauses.max_ns()) * kUsPerNs;
  const auto stops = b.time_to_safepoint.count() - a.time_to_safepoint.count();
  const double stops_ns = static_cast<double>(b.time_to_safepoint.sum_ns() - a.time_to_safepoint.sum_ns());
  const std::uint64_t reads = tb.reads - ta.reads, updates = tb.updates - ta.updates, undos = tb.undos - ta.undos;
  const std::uint64_t long_reads = tb.long_reads - ta.long_reads;
  const std::uint64_t log_bytes = (reads - long_reads) * sizeof(gc::ShortRead) + long_reads * sizeof(gc::ReadEntry) +
                                  updates * sizeof(gc::UpdateEntry) + undos * sizeof(gc::UndoEntry);
  const std::uint64_t allocated =
      (b.allocated_bytes - b.allocated_chunk_bytes) - (a.allocated_bytes - a.allocated_chunk_bytes);
  const auto per_transaction = [&](double value) {
    return transactions != 0 ? value / static_cast<double>(transactions) : 0;
  };
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", elapsed_s)
                   .field("transactions", transactions)
                   .field("transactions_per_s", rate.per_s())
                   .field("thread_cpu_s", thread_cpu_s)
                   .field("thread_cpu_ms", thread_cpu_s * kMsPerS)
                   .field("cpu_ms_per_transaction", per_transaction(thread_cpu_s * kMsPerS))
                   .field("live_bytes", live_bytes)
                   .field("gc_pause_s", pause_s)
                   .field("gc_share", pause_s / elapsed_s)
                   .field("gc_cpu_s", cpu_s)
                   .field("gc_pause_p50_us", quantile_us(pauses, 0.5, pause_max_us))
                   .field("gc_pause_p99_us", quantile_us(pauses, 0.99, pause_max_us))
                   .field("gc_pause_max_us", pause_max_us)
                   .field("safepoint_mean_us", stops != 0 ? stops_ns / static_cast<double>(stops) * kUsPerNs : 0)
                   .field("safepoint_max_us", static_cast<double>(b.time_to_safepoint.max_ns()) * kUsPerNs)
                   .field("gc_minor", b.minor - a.minor)
                   .field("gc_full", b.full - a.full)
                   .field("gc_copied_bytes", b.copied_bytes - a.copied_bytes)
                   .field("gc_copied_log_bytes", b.copied_chunk_bytes - a.copied_chunk_bytes)
                   .field("gc_visited_entries", b.visited_entries - a.visited_entries)
                   .field("gc_dropped_entries", b.dropped_dead + b.dropped_duplicates + b.dropped_subsumed -
                                                    a.dropped_dead - a.dropped_duplicates - a.dropped_subsumed)
                   .field("allocated_bytes", allocated)
                   .field("log_bytes", log_bytes)
                   .field("allocated_and_log_bytes", allocated + log_bytes)
                   .field("memory_bytes", memory_bytes)
                   .field("heap_live_bytes_max", b.live_bytes_max)
                   .field("log_memory_bytes_max", b.log_bytes_max)
                   .field("log_memory_at_full_bytes_max", b.log_bytes_at_full_max)
                   .field("log_memory_returned_bytes", b.returned_log_bytes - a.returned_log_bytes)
                   .field("aborts", tb.aborts - ta.aborts)
                   .field("ran_alone", tb.alone - ta.alone)
                   .field("read_entries", reads)
                   .field("update_entries", updates)
                   .field("undo_entries", undos)
                   .field("entries", reads + updates + undos)
                   .field("entries_per_transaction", per_transaction(static_cast<double>(reads + updates + undos)))
                   .field("returned_bytes", tb.returned_bytes - ta.returned_bytes)
                   .field("chunk_waits", after.chunk_waits - before.chunk_waits);
  if (thread_cpu_s > 0) line.field("gc_cpu_share", cpu_s / thread_cpu_s);
  if (allocated + log_bytes != 0)
    line.field("log_share_of_allocation", static_cast<double>(log_bytes) / static_cast<double>(allocated + log_bytes));
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  team.add_to(line, rate);
  return line;
}

void record_pauses(Recorder& recorder, const Counts& before, const Counts& after) {
  std::array<std::uint64_t, kBuckets> bounds{};
  for (std::size_t i = 1; i < kBuckets; ++i) bounds[i] = std::uint64_t{1} << (i - 1);
  recorder.histogram("gc_pause_ns", bounds, difference(before.heap.pauses, after.heap.pauses));
  recorder.histogram("time_to_safepoint_ns", bounds,
                     difference(before.heap.time_to_safepoint, after.heap.time_to_safepoint));
}

}  // namespace loam::workloads::managed
