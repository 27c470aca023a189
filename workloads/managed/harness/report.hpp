// What every workload of this folder records of its heap and its transactions.
#pragma once

#include "runtime/gc/settings.hpp"
#include "runtime/gc/tx_settings.hpp"
#include "workloads/harness/joined.hpp"
#include "workloads/harness/metric.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::workloads::managed {

using Better = MetricSpec::Better;
using Kind = MetricSpec::Kind;

inline constexpr MetricSpec kSharedMetrics[] = {
    {"transactions_per_s", "1/s", Better::higher, Kind::ratio, "rated_operations", "rated_s"},
    {"transactions", "1", Better::neither, Kind::count},
    {"elapsed_s", "s", Better::neither, Kind::time},
    {"rated_operations", "1", Better::neither, Kind::count},
    {"rated_s", "s", Better::neither, Kind::time},
    {"thread_cpu_s", "s", Better::neither, Kind::time},
    {"run_delay_s", "s", Better::lower, Kind::time},
    {"gc_share", "1", Better::lower, Kind::ratio, "gc_pause_s", "elapsed_s"},
    {"gc_cpu_share", "1", Better::lower, Kind::ratio, "gc_cpu_s", "thread_cpu_s"},
    {"cpu_ms_per_transaction", "ms", Better::lower, Kind::ratio, "thread_cpu_ms", "transactions"},
    {"thread_cpu_ms", "ms", Better::lower, Kind::time},
    {"gc_pause_s", "s", Better::lower, Kind::time},
    {"gc_cpu_s", "s", Better::lower, Kind::time},
    {"gc_pause_p50_us", "us", Better::lower, Kind::time},
    {"gc_pause_p99_us", "us", Better::lower, Kind::time},
    {"gc_pause_max_us", "us", Better::lower, Kind::time},
    {"safepoint_mean_us", "us", Better::lower, Kind::time},
    {"safepoint_max_us", "us", Better::lower, Kind::time},
    {"gc_minor", "1", Better::lower, Kind::count},
    {"gc_full", "1", Better::lower, Kind::count},
    {"gc_copied_bytes", "B", Better::lower, Kind::bytes},
    {"gc_copied_log_bytes", "B", Better::lower, Kind::bytes},
    {"gc_visited_entries", "1", Better::lower, Kind::count},
    {"gc_dropped_entries", "1", Better::neither, Kind::count},
    {"allocated_bytes", "B", Better::lower, Kind::bytes},
    {"log_bytes", "B", Better::lower, Kind::bytes},
    {"log_share_of_allocation", "1", Better::lower, Kind::ratio, "log_bytes", "allocated_and_log_bytes"},
    {"allocated_and_log_bytes", "B", Better::lower, Kind::bytes},
    {"memory_bytes", "B", Better::neither, Kind::bytes},
    {"heap_live_bytes_max", "B", Better::lower, Kind::bytes},
    {"log_memory_bytes_max", "B", Better::lower, Kind::bytes},
    {"log_memory_at_full_bytes_max", "B", Better::lower, Kind::bytes},
    {"log_memory_returned_bytes", "B", Better::neither, Kind::bytes},
    {"aborts", "1", Better::lower, Kind::count},
    {"ran_alone", "1", Better::lower, Kind::count},
    {"read_entries", "1", Better::lower, Kind::count},
    {"update_entries", "1", Better::lower, Kind::count},
    {"undo_entries", "1", Better::lower, Kind::count},
    {"entries_per_transaction", "1", Better::lower, Kind::ratio, "entries", "transactions"},
    {"entries", "1", Better::lower, Kind::count},
    {"returned_bytes", "B", Better::neither, Kind::bytes},
    {"chunk_waits", "1", Better::lower, Kind::count},
};

struct Counts {
  gc::Statistics heap;
  gc::TxStatistics transactions;
  std::uint64_t chunk_waits = 0;
};

// Adds to an iteration's record what happened between two counts. The caller adds its own and calls write().
base::JsonLine& add_managed(Recorder& recorder, const Team& team, const Team::Rate& rate, std::uint64_t transactions,
                            const Counts& before, const Counts& after, std::size_t memory_bytes,
                            std::size_t live_bytes);

// The histograms of pauses and of times to a safepoint, in nanoseconds.
void record_pauses(Recorder& recorder, const Counts& before, const Counts& after);

}  // namespace loam::workloads::managed
