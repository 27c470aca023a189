// malloc-loop: one size, one order: the paths of malloc and free by themselves.
//   Source: the micro-benchmarks that come with allocators (glibc's bench-malloc-simple, among others).
//   Each thread allocates `blocks`, and frees them in the order of the pattern, again and again:
//   lifo    the newest first, as a stack does: a cache of freed blocks hands them out as they lie in memory
//   fifo    the oldest first, as a queue does: what was freed last, and is handed out first, lies farthest behind
//   random  in an order that the seed decides, the same each time: neighbours in memory are freed far apart
//   Metric: pairs of malloc and free per second.
//   Why 1000 blocks: a cache of a few blocks per size (glibc keeps 7) would hide what lies behind it. -p blocks=1 shows
//   the cache alone.
#include "runtime/base/random.hpp"
#include "workloads/allocation/shared/allocation.hpp"

#include <algorithm>
#include <numeric>

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 12'000'000;

enum class Pattern { lifo, fifo, random };

constexpr std::string_view kPatterns[] = {"lifo", "fifo", "random"};

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("pattern", kPatterns, "which is freed first: the newest, the oldest, or a random one"),
    ParameterSpec::integer("size", 16, 16, 32768, "B", "bytes of a block").called("{}\u00a0B blocks"),
    ParameterSpec::integer("blocks", 1000, 1, 1 << 22, "1", "blocks that a thread holds"),
    kDuration,
    operations_parameter("pairs per thread, without warm-up; 0: 12000000, or use duration_ms"),
};

struct Settings {
  explicit Settings(const ParameterValues& values)
      : length(values, kOperations),
        pattern(static_cast<Pattern>(std::ranges::find(kPatterns, values.choice("pattern")) - kPatterns)),
        size(static_cast<std::size_t>(values.integer("size"))),
        blocks(static_cast<std::uint32_t>(values.integer("blocks"))) {}

  Length length;
  Pattern pattern;
  std::size_t size;
  std::uint32_t blocks;
};

// order: all places of `blocks`. All patterns go through this one loop, so that they cost the same beside the calls.
[[gnu::noinline]] std::uint64_t operate(std::size_t size, std::span<Held> blocks, const std::uint32_t* order,
                                        Ledger& ledger, Pace& pace) {
  std::uint64_t pairs = 0;
  while (pace.goes_on(pairs)) {
    // Of the last ones, which may be fewer, each is still freed once: the others' places are empty.
    const std::uint64_t count = std::min<std::uint64_t>(blocks.size(), pace.limit() - pairs);
    for (Held& held : blocks.first(count)) held = ledger.allocate(size);
    for (Held& held : blocks.subspan(count)) held = {};
    for (std::size_t i = 0; i < blocks.size(); ++i) ledger.release(blocks[order[i]]);
    pairs += count;
  }
  return pairs;
}

void arrange(std::span<std::uint32_t> order, Pattern pattern, std::uint64_t seed) {
  std::iota(order.begin(), order.end(), 0u);
  if (pattern == Pattern::lifo) std::ranges::reverse(order);
  if (pattern == Pattern::random) {
    base::Random random(seed);
    for (std::uint32_t i = static_cast<std::uint32_t>(order.size()); i > 1; --i)
      std::swap(order[i - 1], order[random.below(i)]);
  }
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Held> blocks(std::size_t{options.threads} * settings.blocks, "the blocks of malloc-loop");
  const PageArray<std::uint32_t> order(settings.blocks, "the order of malloc-loop");
  arrange(order.span(), settings.pattern, options.seed);

  Team team(options, settings.length.duration_ms);
  auto body = [&](Team::Member& member) {
    Ledger& ledger = ledgers[member.index()];
    const auto own = blocks.part(member.index(), settings.blocks);
    work(member, ledger, settings.length.operations,
         [&](Pace& pace) { return operate(settings.size, own, order.span().data(), ledger, pace); });
  };
  team.run(body);
  return report(recorder, team, Totals(ledgers),
                {{"live_bytes", std::uint64_t{options.threads} * settings.blocks * settings.size}});
}

const base::Registration<Workload> registration{
    Workload{.name = "malloc-loop",
             .summary = "pairs of malloc and free of one size, freed in one order",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = nullptr,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
