// lines: what a cache line costs: read by its owner, passed between two threads, shared by accident.
//   Source: figures 1 and 2 of Sid-Lakhdar, Ropars, "Impact of memory allocation on the performance of a delegation
//   synchronization algorithm", 2016.
//   pattern  own: each thread reads a line of its own, each read waiting for the one before (the first level's latency)
//            pass: two threads in turn write one word; an operation is one change, hence one transfer of the line
//            same: each thread counts in an object of its own, and both objects lie in one line
//            apart: the same, two lines apart
//   count    plain: a read and a write. A processor that predicts which store a load reads (AMD since Zen 3) does it in one
//            cycle as long as it has the line, so that same against apart says as much about that as about the line
//            atomic: one atomic addition, for which every processor needs the line
// Nothing is allocated: what is measured is the machine, beside the schemes that depend on it.
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/compiler.hpp"
#include "runtime/platform/machine.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <atomic>
#include <cstdint>
#include <string_view>

namespace loam::workloads {
namespace {

constexpr std::string_view kPatterns[] = {"own", "pass", "same", "apart"};
constexpr std::string_view kCounts[] = {"plain", "atomic"};

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("pattern", kPatterns,
                          "own: dependent reads of an own line; pass: two threads write one word in turn; same, apart: "
                          "counters of two threads in one line, or two lines apart"),
    ParameterSpec::choice("count", kCounts,
                          "how same and apart count: by a read and a write, or by an atomic addition"),
    duration_parameter(100, 1, "length of the timed part"),
};

using Better = MetricSpec::Better;
using Kind = MetricSpec::Kind;

constexpr MetricSpec kMetrics[] = {
    {"ops_per_s", "1/s", Better::higher, Kind::ratio, "rated_operations", "rated_s"},
    {"operations", "1", Better::higher, Kind::count},
    {"elapsed_s", "s", Better::neither, Kind::time},
    {"rated_operations", "1", Better::neither, Kind::count},
    {"rated_s", "s", Better::neither, Kind::time},
    {"op_ns", "ns", Better::lower, Kind::time},
    {"thread_cpu_s", "s", Better::neither, Kind::time},
    {"run_delay_s", "s", Better::lower, Kind::time},
};

constexpr unsigned kObjectsMax = 2;

// What the threads touch: of the packed objects two lie in one line.
struct Lines {
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> packed[kObjectsMax];
  struct alignas(platform::kApartBytes) Apart {
    std::atomic<std::uint64_t> word;
  } apart[kObjectsMax];
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> turn;
};
constinit Lines lines{};

// An operation on the own object; its line is with the other thread if that one shares it.
template <bool kAtomic>
LOAM_CALLED_AS_WRITTEN std::uint64_t count_in(std::atomic<std::uint64_t>& word, Pace& pace) {
  std::uint64_t done = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(done)) > done;)
    for (; done < until; ++done) {
      // relaxed: nobody but this thread looks at the value.
      if constexpr (kAtomic)
        word.fetch_add(1, std::memory_order_relaxed);
      else
        word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  return done;
}

LOAM_CALLED_AS_WRITTEN std::uint64_t read_own(std::atomic<std::uint64_t>& word, Pace& pace) {
  // The word holds its own address: each read says where the next one is.
  word.store(reinterpret_cast<std::uint64_t>(&word), std::memory_order_relaxed);  // relaxed: this thread's own
  const std::atomic<std::uint64_t>* at = &word;
  std::uint64_t done = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(done)) > done;)
    for (; done < until; ++done)
      at = reinterpret_cast<const std::atomic<std::uint64_t>*>(
          at->load(std::memory_order_relaxed));  // relaxed: as above
  return done;
}

// Writes the turn when it is this thread's; one thread alone plays both sides.
LOAM_CALLED_AS_WRITTEN std::uint64_t pass(std::uint32_t side, bool alone, Pace& pace) {
  std::uint64_t done = 0;
  std::uint32_t waited = 0;
  constexpr std::uint32_t kLooksMax = 1 << 12;  // then the other one may have ended: the pace decides
  while (waited < kLooksMax ? pace.goes_on(done) : pace.goes_on_idle(done)) {
    if (waited >= kLooksMax) {
      waited = 0;
      platform::yield();
    }
    // acquire, release: as a word that passes data on; each side reads what the other one wrote (pairs with itself).
    const std::uint32_t turn = lines.turn.load(std::memory_order_acquire);
    if (!alone && turn % 2 != side) {
      ++waited;
      platform::pause();
      continue;
    }
    waited = 0;
    lines.turn.store(turn + 1, std::memory_order_release);
    ++done;
  }
  return done;
}

bool run(const Options& options, Recorder& recorder) {
  const std::string_view pattern = options.parameters.choice("pattern");
  const auto count = options.parameters.choice("count") == "atomic" ? count_in<true> : count_in<false>;
  if (options.threads > kObjectsMax) reject("--threads", "", "lines has two objects", "use one or two threads");
  static std::uint64_t operations_of[kObjectsMax];
  Team team(options, static_cast<std::uint64_t>(options.parameters.integer("duration_ms")));
  auto body = [&](Team::Member& member) {
    const unsigned index = member.index();
    const auto work = [&](Pace& pace) -> std::uint64_t {
      if (pattern == "own") return read_own(lines.apart[index].word, pace);
      if (pattern == "pass") return pass(index, options.threads == 1, pace);
      return count(pattern == "same" ? lines.packed[index] : lines.apart[index].word, pace);
    };
    member.wait_for_start();
    work(member.warm_up());
    member.timed([&](Pace& pace) { operations_of[index] = work(pace); });
  };
  team.run(body);
  std::uint64_t operations = 0;
  for (unsigned i = 0; i < options.threads; ++i) operations += operations_of[i];
  const auto rate = team.rate(operations);
  // Of a pass, both threads together make one change at a time; else each thread works for itself.
  constexpr double kNsPerS = 1e9;
  const double at_once = pattern == "pass" ? 1 : options.threads;
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("operations", operations)
                   .field("ops_per_s", rate.per_s())
                   .field("op_ns", kNsPerS * at_once / rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s());
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  team.add_to(line, rate);
  recorder.write();
  team.record_slices(recorder);
  const bool worked = operations > 0;
  recorder.end(worked, worked ? "" : "no operation was done", 0);
  return worked;
}

const base::Registration<Workload> registration{
    Workload{.name = "lines",
             .summary = "one cache line: read by its owner, passed between two threads, shared by accident",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = nullptr,
             .run = run}};

}  // namespace
}  // namespace loam::workloads
