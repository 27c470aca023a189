// What all applications report: their common parameters and metrics, the results of workers, the records.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "workloads/applications/shared/sites.hpp"
#include "workloads/applications/shared/sizes.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loam::workloads::applications {

// What verify() found.
struct Outcome {
  std::string_view broken = "";       // what does not hold, with its label; empty: verified
  std::int64_t reachable_blocks = 0;  // made by set-up or in transactions and not freed
};

inline constexpr SyncKinds kSharedData{SyncKind::transactional, SyncKind::lock, SyncKind::delegation, SyncKind::none};

inline constexpr std::string_view kSitesChoices[] = {"counts", "sets"};
inline constexpr ParameterSpec kCommonParameters[] = {
    ParameterSpec::choice("size", kSizeNames,
                          "small: tens of milliseconds; sim: the original's for simulators; medium: about a second; "
                          "large: the original's for real machines")
        .called("size\u00a0{}"),
    ParameterSpec::choice("sites", kSitesChoices,
                          "sets: records the sizes of read and write sets by site (sequential only; no times)"),
    ParameterSpec::integer("abort_every", 0, 0, 1'000'000'000, "1",
                           "for tests: every so-manieth attempt of a thread is given up at its end; 0: none"),
};
inline constexpr MetricSpec kCommonMetrics[] = {
    {"ops_per_s", "1/s", MetricSpec::Better::higher, MetricSpec::Kind::ratio, "rated_operations", "rated_s"},
    {"elapsed_s", "s", MetricSpec::Better::lower, MetricSpec::Kind::time},
    {"operations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"rated_operations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"rated_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
    {"thread_cpu_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
    {"run_delay_s", "s", MetricSpec::Better::lower, MetricSpec::Kind::time},
};

// What one worker leaves behind. Aligned, so that neighbours do not share a line.
struct alignas(platform::kApartBytes) WorkerResult {
  SiteCounts transactions{};
  std::uint64_t operations = 0;
  TmCounters counters;
};

// Of the first `threads` workers; static, so that they move no block of the allocator under study.
std::span<WorkerResult> worker_results(unsigned threads = kThreadsMax) noexcept;

// What was measured, for report().
struct Findings {
  const Team& team;
  std::optional<TmRecords> tm;  // of a transactional memory that counts what it does
  Outcome outcome;
  std::int64_t live_blocks;
  std::span<const std::string_view> sites;
  bool with_sets;
};

// Opens the iteration's record; the application adds its own metrics; close_report() ends the run.
base::JsonLine& open_report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings);
// returns whether all was right
bool close_report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings);

// Rejects common parameters that this synchronisation cannot honour.
void check_common(const ParameterValues& parameters, bool can_restart, bool alone);

}  // namespace loam::workloads::applications
