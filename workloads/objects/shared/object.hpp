// What is the same for every workload whose threads all operate on one object: settings, kinds of synchronisation, what a
// worker does beside the object's operations, the harness's records.
//   A workload is a file beside this folder: the object over any synchronisation, a loop, a check. A synchronisation of the
//   kind `structure` brings the object itself (Sync::Queue, Sync::Stack, ...), and runs the workloads of those that it has.
#pragma once

#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"
#include "workloads/harness/log_histogram.hpp"
#include "workloads/harness/metric.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"
#include "workloads/objects/shared/turns.hpp"
#include "workloads/objects/shared/workers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

namespace loam::workloads::objects {

// ---- parameters

inline constexpr ParameterSpec kObjectParameters[] = {
    ParameterSpec::integer("think", 64, 0, 1 << 20, "1",
                           "turns of an empty loop after each operation, drawn anew from [0, think]"),
    ParameterSpec::integer("latency_every", 64, 0, 1 << 20, "1", "every how many operations one is timed; 0: none"),
    kTimedPart,
    ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1",
                           "operations per thread, instead of a duration, without warm-up; 0: use duration_ms"),
};

// Those, looked up once.
struct Settings {
  explicit Settings(const Options& options);

  std::uint32_t think;
  std::uint64_t latency_every, duration_ms;  // duration_ms 0: `operations` per thread
  std::uint64_t operations;                  // ~0: no limit
};

// Who makes and destroys the nodes of an object.
enum class Allocates { executor, client };
inline constexpr std::string_view kAllocates[] = {"executor", "client"};
inline constexpr ParameterSpec kAllocParameter =
    ParameterSpec::choice("alloc", kAllocates,
                          "who allocates and frees an element: whoever executes the operation, or the thread that asks "
                          "for it, before and after");
Allocates allocates_of(const Options& options);
// Ends the program where a client must not.
void check_alloc(const ParameterValues& values, bool transactional);

// ---- synchronisations

// brought: whether this executable's synchronisation brings the object itself
constexpr SyncKinds kinds(bool brought) {
  using enum SyncKind;
  return brought ? SyncKinds{transactional, lock, delegation, none, structure}
                 : SyncKinds{transactional, lock, delegation, none};
}
// Of the kind `structure`: it runs nothing but the objects that it brings.
template <class SyncType>
inline constexpr bool kBringsObjects = requires { SyncType::kBringsObjects; };

// Pauses between two looks of a thread that waits, of a scheme of delegation.
template <class SyncType>
std::optional<std::uint32_t> pauses_of() {
  if constexpr (requires { SyncType::pauses(); })
    return SyncType::pauses();
  else
    return std::nullopt;
}

// ---- metrics

// The names of what is reported of one kind of operation.
struct LatencyNames {
  std::string_view p50, p99, max;
};

inline constexpr MetricSpec kFairnessMetrics[] = {
    {"run_length", "1", MetricSpec::Better::neither, MetricSpec::Kind::ratio, "executed", "turns"},
    {"executed", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"turns", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"least_share", "1", MetricSpec::Better::higher, MetricSpec::Kind::ratio, "least_operations", "mean_operations"},
    {"least_operations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"mean_operations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"pauses_per_look", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"pause_ns", "ns", MetricSpec::Better::neither, MetricSpec::Kind::time},
};

template <std::size_t n>
consteval auto metrics_of(const LatencyNames (&latencies)[n]) {
  std::array<MetricSpec, std::size(kRateMetrics) + std::size(kFairnessMetrics) + 3 * n> all{};
  std::size_t count = 0;
  for (const MetricSpec& metric : kRateMetrics) all[count++] = metric;
  for (const MetricSpec& metric : kFairnessMetrics) all[count++] = metric;
  for (const LatencyNames& names : latencies)
    for (const std::string_view name : {names.p50, names.p99, names.max})
      all[count++] = {name, "ns", MetricSpec::Better::lower, MetricSpec::Kind::time};
  return all;
}

// ---- a worker's loop

// Time of a client's own between two operations.
[[gnu::always_inline]] inline void think(base::Random& random, std::uint32_t most) {
  if (most == 0) return;
  for (auto left = base::scale_to(static_cast<std::uint32_t>(random() >> 32), most + 1); left > 0; --left)
    platform::compiler_barrier();
}

// Runs `operation`, and times it if its turn has come.
template <class Operation>
[[gnu::always_inline]] inline void timed(std::uint64_t& until_next, std::uint64_t every, LogHistogram& ticks,
                                         Operation&& operation) {
  if (every == 0 || --until_next != 0) [[likely]] {
    operation();
    return;
  }
  until_next = every;
  const std::uint64_t before = platform::ordered_ticks();
  operation();
  ticks.add(platform::ordered_ticks() - before);
}

// Calls operate(worker, thread, random, pace), which returns how many operations it did, in every thread: to warm up, then
// to be timed.
template <class SyncType, class Worker, class Operate>
void drive(Team& team, const Options& options, const Settings& settings, const Workers<Worker>& workers,
           Operate&& operate) {
  auto body = [&](Team::Member& member) {
    base::Random random(options.seed, member.index());
    Worker& worker = workers[member.index()];
    member.wait_for_start();
    operate(worker, member.index(), random, member.warm_up());
    // What was timed in the warm-up does not count.
    for (LogHistogram& ticks : worker.ticks) ticks = {};
    const TmCounters before = tm_counters<SyncType>();
    member.timed([&](Pace& pace) { worker.operations = operate(worker, member.index(), random, pace); },
                 settings.operations);
    (worker.counters = tm_counters<SyncType>()) -= before;
    SyncType::thread_exit();
  };
  team.run(body);
}

// ---- records

// Of all workers.
struct Totals {
  std::uint64_t operations = 0, least = ~std::uint64_t{0};
  std::size_t workers = 0;
  TmCounters counters;
  LogHistogram ticks[kKindsMax];

  void add(const Work& work) noexcept;
};

struct Findings {
  const Team& team;
  const Settings& settings;
  std::span<const LatencyNames> latencies;
  std::optional<TmRecords> tm;          // of a transactional memory that counts what it does
  std::optional<Turns> turns;           // where executors are known
  std::optional<std::uint32_t> pauses;  // of a scheme of delegation
  std::string_view mistake;             // that the workload's own check found; empty if all was right
  std::int64_t live_blocks_delta;
  std::uint64_t live_bytes;
};

// Records the iteration and the end. returns whether all was right
bool report(Recorder& recorder, const Totals& totals, const Findings& findings);

template <class Worker>
bool report(Recorder& recorder, std::span<Worker> workers, const Findings& findings) {
  static Totals totals;  // too large for a stack
  for (const Worker& worker : workers) totals.add(worker);
  return report(recorder, totals, findings);
}

}  // namespace loam::workloads::objects
