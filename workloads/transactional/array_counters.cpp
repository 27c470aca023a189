// array-counters: each operation adds one to a counter: the shortest update that there is.
//   layout=own     each thread has a counter on lines of its own: disjoint operations, which ought to scale
//   layout=shared  all threads have one: what a conflict costs
//   Source: the columns `priv` and `counter` of comparisons of transactional memories, the limit of what an operation costs.
//   Caveat: under a lock or a scheme of delegation both layouts are one object.
#include "runtime/platform/compiler.hpp"
#include "workloads/transactional/shared/intset.hpp"

#include <cstdint>
#include <string_view>

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using intset::worker_results;

constexpr std::string_view kLayouts[] = {"own", "shared"};
constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("layout", kLayouts, "own: a counter for each thread; shared: one for all"),
    kTimedPart,
    ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1",
                           "operations per thread instead of a duration, without warm-up; 0: use duration_ms"),
};

struct alignas(platform::kApartBytes) Counter {
  std::int64_t value = 0;
};
// Static, so that no allocator places them.
constinit Counter counters[kThreadsMax];
constinit Counter expected[kThreadsMax];  // by thread: how often it has added, over both phases

// One copy (noipa) for both phases: the warm-up warms the code that is timed. returns how often it added
template <class SyncType>
LOAM_CALLED_AS_WRITTEN std::uint64_t add(std::int64_t& counter, Pace& pace) {
  std::uint64_t done = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(done)) > done;)
    for (; done < until; ++done)
      SyncType::update([&counter](auto& access) __attribute__((flatten)) {
        access.write(counter, access.read(counter) + 1);
        return true;
      });
  return done;
}

template <class SyncType>
bool run(const Options& options, Recorder& recorder) {
  const bool shared = options.parameters.choice("layout") == "shared";
  const auto operations = static_cast<std::uint64_t>(options.parameters.integer("operations"));
  const std::uint64_t limit = operations == 0 ? ~std::uint64_t{0} : operations;
  SyncType::note_block(counters, sizeof counters);
  const std::int64_t blocks_before = SyncType::live_blocks();

  Team team(options, operations == 0 ? static_cast<std::uint64_t>(options.parameters.integer("duration_ms")) : 0);
  auto body = [&](Team::Member& member) {
    std::int64_t& counter = counters[shared ? 0 : member.index()].value;
    auto& result = worker_results()[member.index()];
    member.wait_for_start();
    const std::uint64_t before = add<SyncType>(counter, member.warm_up());
    const TmCounters counted = tm_counters<SyncType>();
    member.timed([&](Pace& pace) { result.operations = add<SyncType>(counter, pace); }, limit);
    (result.counters = tm_counters<SyncType>()) -= counted;
    expected[member.index()].value = static_cast<std::int64_t>(before + result.operations);
    SyncType::thread_exit();
  };
  team.run(body);

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  intset::Check check{true, ""};
  std::int64_t all = 0;
  for (unsigned thread = 0; thread < options.threads; ++thread) {
    all += expected[thread].value;
    if (!shared && counters[thread].value != expected[thread].value)
      check = {false, "a thread's counter is not what it has added"};
  }
  if (shared && counters[0].value != all) check = {false, "the counter is not the sum of what threads have added"};
  return intset::report(
      recorder, worker_results(options.threads),
      {.team = team, .tm = records, .check = check, .live_blocks_delta = SyncType::live_blocks() - blocks_before});
}

bool run_array_counters(const Options& options, Recorder& recorder) {
  return options.blame ? run<BlameSync>(options, recorder) : run<Sync>(options, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "array-counters",
             .summary = "adds one to a counter, each thread's own or a shared one: the shortest transaction",
             .kinds = {SyncKind::transactional, SyncKind::lock, SyncKind::delegation},
             .parameters = kParameters,
             .metrics = kRateMetrics,
             .check = nullptr,
             .run = run_array_counters}};

}  // namespace
}  // namespace loam::workloads
