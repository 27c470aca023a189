// threadtest: allocate and free, nothing else.
//   Source Berger et al., "Hoard", ASPLOS 2000.   Each thread allocates `batch` blocks of `size` bytes, writes one word
//   into each if `touch`, and frees them in order, again and again. Metric: pairs of malloc and free per second.
//   Caveat: at -O2 GCC removes a malloc-write-free loop whole; the build forbids it (-fno-builtin-malloc,
//   -fno-builtin-free) and a test counts the calls.
#include "runtime/platform/pages.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace loam::workloads {
namespace {

using Word = std::uint64_t;

constexpr std::int64_t kSizeMax = 1 << 26, kBatchMax = 1 << 22;

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::integer("size", 16, sizeof(Word), kSizeMax, "B", "bytes of a block").called("{}\u00a0B blocks"),
    ParameterSpec::integer("batch", 1, 1, kBatchMax, "1", "blocks that a thread holds at a time"),
    ParameterSpec::integer("touch", 1, 0, 1, "", "1: write the first word of each block"),
    kTimedPart,
    ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1",
                           "pairs per thread (rounded up to batches) instead of a duration, without warm-up; "
                           "0: use duration_ms"),
};

using Better = MetricSpec::Better;
using Kind = MetricSpec::Kind;

constexpr MetricSpec kMetrics[] = {
    {"pairs_per_s", "1/s", Better::higher, Kind::ratio, "rated_operations", "rated_s"},
    {"pairs", "1", Better::higher, Kind::count},
    {"elapsed_s", "s", Better::neither, Kind::time},
    {"rated_operations", "1", Better::neither, Kind::count},
    {"rated_s", "s", Better::neither, Kind::time},
    {"thread_cpu_s", "s", Better::neither, Kind::time},
    {"run_delay_s", "s", Better::lower, Kind::time},
};

struct Settings {
  explicit Settings(const ParameterValues& values)
      : size(static_cast<std::size_t>(values.integer("size"))),
        batch(static_cast<std::size_t>(values.integer("batch"))),
        touch(values.integer("touch") != 0),
        duration_ms(static_cast<std::uint64_t>(values.integer("duration_ms"))),
        pairs(static_cast<std::uint64_t>(values.integer("operations"))) {
    if (pairs != 0) {
      duration_ms = 0;
    } else {
      pairs = ~std::uint64_t{0};
    }
  }

  std::size_t size, batch;
  bool touch;
  std::uint64_t duration_ms, pairs;
};

struct alignas(platform::kApartBytes) Result {
  std::uint64_t pairs = 0;
  std::uint64_t failures = 0;  // malloc returned null, or a block was wrong when checked
};

constinit Result results[kThreadsMax];

// volatile: the word must be written although nobody reads it.
inline void touch_block(void* block) noexcept { *static_cast<volatile Word*>(block) = 1; }

template <bool touch>
[[gnu::noinline]] std::uint64_t pairs_of_one(std::size_t size, Pace& pace, std::uint64_t& failures) {
  std::uint64_t pairs = 0;
  for (; pace.goes_on(pairs); ++pairs) {
    void* const block = std::malloc(size);
    if (block == nullptr) [[unlikely]] {
      ++failures;
      break;
    }
    if constexpr (touch) touch_block(block);
    std::free(block);
  }
  return pairs;
}

template <bool touch>
[[gnu::noinline]] std::uint64_t pairs_of_batches(std::size_t size, std::span<void*> blocks, Pace& pace,
                                                 std::uint64_t& failures) {
  std::uint64_t pairs = 0;
  while (pace.goes_on(pairs)) {
    for (void*& block : blocks) {
      block = std::malloc(size);
      if (block == nullptr) [[unlikely]] {
        ++failures;
      } else if constexpr (touch) {
        touch_block(block);
      }
    }
    for (void* const block : blocks) std::free(block);
    if (failures != 0) break;
    pairs += blocks.size();
  }
  return pairs;
}

std::uint64_t operate(const Settings& settings, std::span<void*> blocks, Pace& pace, std::uint64_t& failures) {
  if (settings.batch == 1)
    return settings.touch ? pairs_of_one<true>(settings.size, pace, failures)
                          : pairs_of_one<false>(settings.size, pace, failures);
  return settings.touch ? pairs_of_batches<true>(settings.size, blocks, pace, failures)
                        : pairs_of_batches<false>(settings.size, blocks, pace, failures);
}

// Some blocks at once must not overlap: each keeps the pattern written into it. Outside of the timed part.
// returns how many were wrong
std::uint64_t count_wrong_blocks(const Settings& settings) {
  constexpr std::size_t kBytesMax = 1 << 26;
  unsigned char* blocks[64];
  const std::size_t count = std::max<std::size_t>(2, std::min(std::size(blocks), kBytesMax / settings.size));
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = static_cast<unsigned char*>(std::malloc(settings.size));
    if (blocks[i] != nullptr) std::memset(blocks[i], static_cast<int>(i), settings.size);
  }
  for (std::size_t i = 0; i < count; ++i) {
    bool right = blocks[i] != nullptr;
    for (std::size_t b = 0; right && b < settings.size; ++b) right = blocks[i][b] == i;
    wrong += right ? 0 : 1;
  }
  for (std::size_t i = 0; i < count; ++i) std::free(blocks[i]);
  return wrong;
}

void work(const Settings& settings, Team::Member& member) {
  Result& result = results[member.index()];
  // From the operating system: the list of blocks must not itself be a block.
  const std::size_t bytes = settings.batch * sizeof(void*);
  const auto blocks = std::span(static_cast<void**>(platform::map_lazy_or_die(bytes, "a batch")), settings.batch);
  for (void*& block : blocks) block = nullptr;  // touched before the clock runs
  member.wait_for_start();
  operate(settings, blocks, member.warm_up(), result.failures);
  member.timed([&](Pace& pace) { result.pairs = operate(settings, blocks, pace, result.failures); }, settings.pairs);
  result.failures += count_wrong_blocks(settings);
  platform::unmap(blocks.data(), bytes);
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  Team team(options, settings.duration_ms);
  auto body = [&](Team::Member& member) { work(settings, member); };
  team.run(body);

  std::uint64_t pairs = 0, failures = 0;
  for (const auto& result : std::span(results).first(options.threads)) {
    pairs += result.pairs;
    failures += result.failures;
  }
  const auto rate = team.rate(pairs);
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("pairs", pairs)
                   .field("pairs_per_s", rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s())
                   // Between its mallocs and its frees each thread holds a whole batch.
                   .field("live_bytes", std::uint64_t{options.threads} * settings.batch * settings.size);
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  team.add_to(line, rate);
  recorder.write();
  team.record_slices(recorder);
  recorder.end(failures == 0, failures == 0 ? "" : "malloc failed, or blocks overlapped", 0);
  return failures == 0;
}

const base::Registration<Workload> registration{Workload{.name = "threadtest",
                                                         .summary = "pairs of malloc and free, nothing else",
                                                         .kinds = {SyncKind::none},
                                                         .parameters = kParameters,
                                                         .metrics = kMetrics,
                                                         .check = nullptr,
                                                         .run = run}};

}  // namespace
}  // namespace loam::workloads
