// What sh6 and sh8 share: runs of blocks of one size, and a thread's window of them.
//   Sizes are skewed (small ones are more frequent in inverse proportion); some runs are a single large block. When the
//   window is full one run gives way, by turns the oldest, freed forward; the newest, freed backward; and any one,
//   freed from its middle down and then from its middle up. So lifetimes differ by the length of the window.
//   An operation is one block: malloc, and the free of another.
#pragma once

#include "runtime/base/random.hpp"
#include "workloads/allocation/shared/allocation.hpp"

#include <algorithm>

namespace loam::workloads::allocation {

inline constexpr std::size_t kWindowMax = 1024, kRunMax = 256;

// The two differ in how many of their runs are large, and in their default number of operations.
struct RunsParameters {
  consteval RunsParameters(std::int64_t large_percent, std::string_view operations_help)
      : all{size_parameter("size_min", 8, "bytes of the smallest block"),
            size_parameter("size_max", 1000, "bytes of the largest block of a run"),
            size_parameter("large_size", 16384, "bytes of a large block"),
            ParameterSpec::integer("large_percent", large_percent, 0, 100, "%", "share of runs that are a large block"),
            ParameterSpec::integer("run", 32, 1, kRunMax, "1", "blocks of the longest run"),
            ParameterSpec::integer("window", 100, 1, kWindowMax, "1", "runs that a thread holds"),
            kDuration,
            operations_parameter(operations_help)} {}

  ParameterSpec all[8];
};

inline void check_runs(const ParameterValues& values) {
  check_sizes(values);
  const auto large = values.integer("large_size"), size_max = values.integer("size_max");
  if (large < size_max) reject_less("large_size", large, "size_max", size_max);
}

struct RunsSettings {
  RunsSettings(const ParameterValues& values, std::uint64_t operations)
      : length(values, operations),
        sizes(static_cast<std::size_t>(values.integer("size_min")),
              static_cast<std::size_t>(values.integer("size_max"))),
        large_size(static_cast<std::size_t>(values.integer("large_size"))),
        large_percent(static_cast<std::uint32_t>(values.integer("large_percent"))),
        run(static_cast<std::uint32_t>(values.integer("run"))),
        window(static_cast<std::size_t>(values.integer("window"))) {}

  Length length;
  SkewedSizes sizes;
  std::size_t large_size;
  std::uint32_t large_percent, run;
  std::size_t window;
};

struct Run {
  enum class Order : std::uint32_t { forward, backward, outwards };
  static constexpr unsigned kOrders = 3;

  // returns how many blocks were allocated: at most `limit`
  std::uint64_t fill(const RunsSettings& settings, base::Random& random, Ledger& ledger, std::uint64_t limit) {
    const bool large = random.below(100) < settings.large_percent;
    const std::size_t size = large ? settings.large_size : settings.sizes.drawn(random);
    count = large ? 1 : static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, 1 + random.below(settings.run)));
    for (Held& held : std::span(blocks).first(count)) held = ledger.allocate(size);
    return count;
  }

  void release(Order order, Ledger& ledger) {
    const auto all = std::span(blocks).first(count);
    const std::size_t middle = order == Order::forward ? 0 : order == Order::backward ? count : count / 2;
    for (std::size_t i = middle; i != 0; --i) ledger.release(all[i - 1]);
    for (const Held& held : all.subspan(middle)) ledger.release(held);
    count = 0;
  }

  std::uint32_t count = 0;
  Held blocks[kRunMax];
};

// The runs of one thread, from the oldest to the newest.
class Window {
 public:
  explicit Window(std::span<Run> runs) noexcept : size_(runs.size()) {
    for (std::size_t i = 0; i < size_; ++i) runs_[i] = &runs[i];
  }

  // Fills and releases runs. change(run, order): releases the run that gives way; returns the one that takes its place
  // returns how many blocks were allocated
  template <class Change>
  [[gnu::noinline]] std::uint64_t operate(const RunsSettings& settings, base::Random& random, Ledger& ledger,
                                          Pace& pace, Change& change) {
    std::uint64_t made = 0;
    while (pace.goes_on(made)) {
      const auto order = static_cast<Run::Order>(turn_++ % Run::kOrders);
      const std::size_t at = order == Run::Order::forward    ? 0
                             : order == Run::Order::backward ? size_ - 1
                                                             : random.below(static_cast<std::uint32_t>(size_));
      Run* const run = change(runs_[at], order);
      std::copy(runs_ + at + 1, runs_ + size_, runs_ + at);
      runs_[size_ - 1] = run;
      made += run->fill(settings, random, ledger, pace.limit() - made);
    }
    return made;
  }

  void fill(const RunsSettings& settings, base::Random& random, Ledger& ledger) {
    for (Run* run : std::span(runs_).first(size_)) run->fill(settings, random, ledger, kRunMax);
  }

 private:
  std::size_t size_;
  std::uint64_t turn_ = 0;
  Run* runs_[kWindowMax];
};

// Each member holds a window of its part of `runs`, and operates it by the `change` that change_of(thread) returns.
template <class ChangeOf>
void operate_windows(Team& team, std::uint64_t seed, const RunsSettings& settings, const PageArray<Run>& runs,
                     std::span<Ledger> ledgers, ChangeOf change_of) {
  auto body = [&](Team::Member& member) {
    const unsigned thread = member.index();
    Ledger& ledger = ledgers[thread];
    base::Random random(seed, thread);
    Window window(runs.part(thread, settings.window));
    window.fill(settings, random, ledger);
    auto change = change_of(thread);
    work(member, ledger, settings.length.operations,
         [&](Pace& pace) { return window.operate(settings, random, ledger, pace, change); });
  };
  team.run(body);
}

}  // namespace loam::workloads::allocation
