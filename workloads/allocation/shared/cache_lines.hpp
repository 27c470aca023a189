// What cache-scratch and cache-thrash share: threads that write their own small blocks, over and over.
//   Each thread allocates `blocks`, adds 1 to the first word of each in turn `writes` times, checks and frees them.
//   If blocks of two threads lie in one cache line, each write takes the line away from the other core.
//   Why several blocks: one block per thread, as the source has it (-p blocks=1), shares a line or does not by the
//   accident of where in its line the first one lies.
//   An operation is one block: malloc, `writes` writes, free.
#pragma once

#include "workloads/allocation/shared/allocation.hpp"

#include <algorithm>

namespace loam::workloads::allocation {

inline constexpr std::uint64_t kWrittenBlocks = 3'000'000;  // operations by default
inline constexpr std::size_t kWrittenAtOnceMax = 64;

inline constexpr ParameterSpec kCacheLineParameters[] = {
    size_parameter("size", 8, "bytes of a block").called("{}\u00a0B blocks"),
    ParameterSpec::integer("blocks", 8, 1, kWrittenAtOnceMax, "1", "blocks that a thread holds and writes in turn"),
    ParameterSpec::integer("writes", 200, 1, 1 << 30, "1", "writes into a block before it is freed"),
    kDuration,
    operations_parameter("blocks per thread, without warm-up; 0: 3000000, or use duration_ms"),
};

struct CacheLineSettings {
  explicit CacheLineSettings(const ParameterValues& values)
      : length(values, kWrittenBlocks),
        size(static_cast<std::size_t>(values.integer("size"))),
        blocks(static_cast<std::size_t>(values.integer("blocks"))),
        writes(static_cast<std::uint64_t>(values.integer("writes"))) {}

  Length length;
  std::size_t size, blocks;
  std::uint64_t writes;
};

[[gnu::noinline]] inline std::uint64_t write_blocks(const CacheLineSettings& settings, Ledger& ledger, Pace& pace) {
  std::array<Held, kWrittenAtOnceMax> blocks;
  std::uint64_t written = 0;
  while (pace.goes_on(written)) {
    const auto some = std::span(blocks).first(std::min<std::uint64_t>(settings.blocks, pace.limit() - written));
    bool complete = true;
    for (Held& held : some) complete = (held = ledger.allocate(settings.size)).block != nullptr && complete;
    // volatile: each write happens although only their sum is looked at.
    for (std::uint64_t i = 0; complete && i < settings.writes; ++i)
      for (const Held& held : some) {
        auto& word = *static_cast<volatile Word*>(held.block);
        word = word + 1;
      }
    for (const Held& held : some) ledger.release(held, complete ? settings.writes : 0);
    written += some.size();
  }
  return written;
}

// before(thread): what a thread does once, before the team starts
template <class Before>
bool run_cache_lines(const Options& options, Recorder& recorder, const CacheLineSettings& settings,
                     std::span<Ledger> ledgers, Before before) {
  Team team(options, settings.length.duration_ms);
  auto body = [&](Team::Member& member) {
    Ledger& ledger = ledgers[member.index()];
    before(member.index());
    work(member, ledger, settings.length.operations, [&](Pace& pace) { return write_blocks(settings, ledger, pace); });
  };
  team.run(body);
  return report(recorder, team, Totals(ledgers),
                {{"live_bytes", std::uint64_t{options.threads} * settings.blocks * settings.size}});
}

constexpr Workload cache_lines_workload(std::string_view name, std::string_view summary,
                                        bool (*run)(const Options& options, Recorder& recorder)) {
  return {.name = name,
          .summary = summary,
          .kinds = {SyncKind::none},
          .parameters = kCacheLineParameters,
          .metrics = kMetrics,
          .check = nullptr,
          .run = run};
}

}  // namespace loam::workloads::allocation
