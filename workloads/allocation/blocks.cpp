// blocks: where an allocator puts the blocks of several threads, and which ownership records those places share.
//   Each thread allocates `count` blocks of `size` bytes, in turn with the others (thread 0, 1, ..., 0, 1, ...) or all
//   at once (`turns=0`), and keeps them until all have theirs. Nothing else is allocated in between: addresses go into
//   a static array, so that the places are those of a program that does only this.
//   Metrics: the room that a block takes, what it offers, blocks that share a cache line with another thread's, and
//   blocks that share an ownership record of the table, (address >> stripe_log2) modulo 2^table_log2, with another
//   block: in the same stripe, or aliased from another stripe.
//   Caveat: a block is represented by its first byte; what a stripe boundary inside of it adds is not counted.
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <malloc.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace loam::workloads {
namespace {

constexpr std::size_t kCountMax = 64;
// Those that the report draws; all others only count.
constexpr std::size_t kBlocksRecorded = 64;

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::integer("size", 16, 1, 1 << 20, "B", "bytes of a block").called("{}\u00a0B blocks"),
    ParameterSpec::integer("count", 16, 2, kCountMax, "1", "blocks that each thread allocates"),
    ParameterSpec::integer("turns", 1, 0, 1, "", "1: the threads take turns, block by block; 0: each does all at once"),
    ParameterSpec::integer("stripe_log2", 5, 3, 12, "", "log2 of the bytes that share an ownership record"),
    ParameterSpec::integer("table_log2", 20, 10, 26, "", "log2 of the number of ownership records"),
};

using Better = MetricSpec::Better;
using Kind = MetricSpec::Kind;

constexpr MetricSpec kMetrics[] = {
    {"distance_bytes", "B", Better::lower, Kind::bytes},
    {"usable_bytes", "B", Better::neither, Kind::bytes},
    {"overhead_bytes", "B", Better::lower, Kind::bytes},
    {"blocks", "1", Better::neither, Kind::count},
    {"line_mates", "1", Better::lower, Kind::count},
    {"line_mates_per_block", "1", Better::lower, Kind::ratio, "line_mates", "blocks"},
    {"stripe_mates", "1", Better::lower, Kind::count},
    {"stripe_mates_per_block", "1", Better::lower, Kind::ratio, "stripe_mates", "blocks"},
    {"aliased", "1", Better::lower, Kind::count},
    {"aliased_per_block", "1", Better::lower, Kind::ratio, "aliased", "blocks"},
    {"elapsed_s", "s", Better::neither, Kind::time},
    {"thread_cpu_s", "s", Better::neither, Kind::time},
};

struct Block {
  std::uintptr_t address;
  std::size_t usable;
  unsigned thread, turn;
};

// [thread][turn]; static, since an array from the allocator would itself be a block.
constinit Block blocks[kThreadsMax * kCountMax] = {};

struct alignas(platform::kApartBytes) Turn {
  std::atomic<std::uint64_t> next{0};
};
constinit Turn turn;

struct Settings {
  explicit Settings(const ParameterValues& values)
      : size(static_cast<std::size_t>(values.integer("size"))),
        count(static_cast<std::size_t>(values.integer("count"))),
        turns(values.integer("turns") != 0),
        stripe_log2(static_cast<unsigned>(values.integer("stripe_log2"))),
        records((std::uintptr_t{1} << values.integer("table_log2")) - 1) {}

  std::uintptr_t stripe(const Block& block) const noexcept { return block.address >> stripe_log2; }
  // The table's formula of runtime/tm/records/mapping.hpp.
  std::uintptr_t record(const Block& block) const noexcept { return stripe(block) & records; }

  std::size_t size, count;
  bool turns;
  unsigned stripe_log2;
  std::uintptr_t records;
};

void wait_for_turn(std::uint64_t mine) noexcept {
  constexpr unsigned kSpinsMax = 256;
  // blocks.T: acquire orders this thread's call of malloc after that of the one before it.
  for (unsigned spins = 0; turn.next.load(std::memory_order_acquire) != mine; ++spins)
    spins < kSpinsMax ? platform::pause() : platform::yield();
}

void work(const Settings& settings, unsigned threads, Team::Member& member) {
  const std::span<Block> own(blocks + member.index() * settings.count, settings.count);
  for (Block& block : own) block = {};  // touched before the first call
  member.wait_for_start();
  member.timed([&](Pace&) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::uint64_t mine = i * threads + member.index();
      if (settings.turns) wait_for_turn(mine);
      void* const made = std::malloc(settings.size);
      own[i] = {reinterpret_cast<std::uintptr_t>(made), 0, member.index(), static_cast<unsigned>(i)};
      // blocks.T: release hands the turn on after the call.
      if (settings.turns) turn.next.store(mine + 1, std::memory_order_release);
    }
  });
}

struct Counts {
  std::uint64_t line_mates = 0, stripe_mates = 0, aliased = 0;
  std::uintptr_t distance = 0;  // the smallest between two blocks; 0 where they overlap
};

// all: sorted by address
template <class Key, class Differs>
std::uint64_t count_mates(std::span<const Block> all, Key key, Differs differs) {
  std::uint64_t found = 0;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && key(all[end]) == key(all[begin])) ++end;
    const auto group = all.subspan(begin, end - begin);
    for (const Block& one : group)
      found += std::ranges::any_of(group, [&](const Block& other) { return differs(one, other); }) ? 1 : 0;
  }
  return found;
}

Counts count(const Settings& settings, std::span<Block> all) {
  Counts counts;
  std::ranges::sort(all, {}, &Block::address);
  counts.distance = ~std::uintptr_t{0};
  for (std::size_t i = 1; i < all.size(); ++i)
    counts.distance = std::min(counts.distance, all[i].address - all[i - 1].address);
  counts.line_mates = count_mates(
      all, [](const Block& block) { return block.address / platform::kCacheLineBytes; },
      [](const Block& one, const Block& other) { return one.thread != other.thread; });
  counts.stripe_mates = count_mates(
      all, [&](const Block& block) { return settings.stripe(block); },
      [](const Block& one, const Block& other) { return one.address != other.address; });
  std::ranges::sort(all, {}, [&](const Block& block) { return settings.record(block); });
  counts.aliased = count_mates(
      all, [&](const Block& block) { return settings.record(block); },
      [&](const Block& one, const Block& other) { return settings.stripe(one) != settings.stripe(other); });
  return counts;
}

// In the order of the calls, every thread the same number of blocks.
void record_places(const Settings& settings, unsigned threads, std::span<Block> all, Recorder& recorder) {
  std::ranges::sort(all, {}, [&](const Block& block) { return block.turn * std::uint64_t{threads} + block.thread; });
  const std::size_t shown = std::min(all.size(), kBlocksRecorded);
  static constexpr std::string_view kColumns[] = {"thread", "address", "usable_bytes", "record"};
  auto& line = recorder.series("blocks", kColumns);
  for (const Block& block : all.first(shown))
    line.array().value(block.thread).value(block.address).value(block.usable).value(settings.record(block)).end();
  line.end();
  recorder.write();
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  Team team(options, 0);
  auto body = [&](Team::Member& member) { work(settings, options.threads, member); };
  team.run(body);

  const std::span<Block> all(blocks, options.threads * settings.count);
  std::string_view wrong;
  std::size_t usable = ~std::size_t{0};
  for (Block& block : all) {
    void* const memory = reinterpret_cast<void*>(block.address);
    if (memory == nullptr) {
      wrong = "malloc failed";
      continue;
    }
    block.usable = malloc_usable_size(memory);
    usable = std::min(usable, block.usable);
    std::memset(memory, 1, settings.size);
  }
  const Counts counts = count(settings, all);
  if (wrong.empty() && counts.distance < settings.size) wrong = "two blocks overlap";
  const std::uintptr_t overhead = counts.distance > usable ? counts.distance - usable : 0;
  const double made = static_cast<double>(all.size());
  recorder.iteration(0)
      .field("distance_bytes", counts.distance)
      .field("usable_bytes", usable)
      .field("overhead_bytes", overhead)
      .field("blocks", all.size())
      .field("line_mates", counts.line_mates)
      .field("line_mates_per_block", static_cast<double>(counts.line_mates) / made)
      .field("stripe_mates", counts.stripe_mates)
      .field("stripe_mates_per_block", static_cast<double>(counts.stripe_mates) / made)
      .field("aliased", counts.aliased)
      .field("aliased_per_block", static_cast<double>(counts.aliased) / made)
      .field("elapsed_s", team.elapsed_s())
      .field("thread_cpu_s", team.thread_cpu_s());
  recorder.write();
  record_places(settings, options.threads, all, recorder);
  for (const Block& block : all) std::free(reinterpret_cast<void*>(block.address));
  recorder.end(wrong.empty(), wrong, 0);
  return wrong.empty();
}

const base::Registration<Workload> registration{
    Workload{.name = "blocks",
             .summary = "where blocks of several threads lie, and which records they share",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = nullptr,
             .run = run}};

}  // namespace
}  // namespace loam::workloads
