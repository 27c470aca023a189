// Pace: the condition of every timed loop: whether a worker's loop continues.
//   Per operation the loop only compares its count with the count at which it reads the clock next. About 30 times per
//   slice it reads the clock and the phase, and closes a segment if a slice has ended (slices.hpp). The number of
//   operations between two reads is adapted to their speed, from the warm-up on. A loop with a fixed number of
//   operations never reads the clock.
//   Cost    per operation a comparison with memory; per read of the clock a call, some 30 ns every 30 us.
//   Caveat  a worker notices the end of a phase when it next reads the clock, so threads end some 30 us apart.
#pragma once

#include "workloads/harness/slices.hpp"

#include <atomic>
#include <cstdint>

namespace loam::workloads {

enum class Phase : std::uint32_t { warmup, timed, done };

inline bool in(const std::atomic<Phase>& now, Phase phase) noexcept {
  // relaxed: the phase carries no data; results are read after joining.
  return now.load(std::memory_order_relaxed) == phase;
}

class Pace {
 public:
  // now: the team's phase; slice_ns: 0 if the work is a number of operations
  Pace(const std::atomic<Phase>& now, std::uint64_t slice_ns) noexcept : now_(now), slice_ns_(slice_ns) {}

  // A new loop, of at most `limit` operations, that belongs to a phase. log: where its segments go; null: nowhere
  void begin(Phase phase, std::uint64_t limit, SegmentLog* log) noexcept;

  // Whether the loop goes on after `done` operations of its own, a number that must not shrink.
  [[gnu::always_inline]] bool goes_on(std::uint64_t done) noexcept { return done < look_at_ || look(done); }

  // The same in two levels, for a loop of a few nanoseconds per operation, whose registers the call of a look would
  // cost: the count at which to ask again, or nothing more than `done` where the loop ends.
  //   for (std::uint64_t until; (until = pace.goes_on_until(done)) > done;)
  //     for (; done < until; ++done) ...
  std::uint64_t goes_on_until(std::uint64_t done) noexcept { return look(done) ? look_at_ : done; }

  // The same for a loop whose count may stand still, since it may find nothing to do: it looks up in any case.
  bool goes_on_idle(std::uint64_t done) noexcept {
    looked_ns_ = 0;
    return look(done);
  }

  Phase phase() const noexcept { return phase_; }
  std::uint64_t limit() const noexcept { return limit_; }
  // For a loop whose work other threads do: what they waited in all, see SegmentLog::waits_are.
  void waits_are(const std::uint64_t& total_ns) noexcept {
    if (log_ != nullptr) log_->waits_are(total_ns);
  }

 private:
  static constexpr std::uint64_t kLooksPerSlice = 32;
  // More than any loop does between two looks: one that does nothing must not run away from its count.
  static constexpr std::uint64_t kStepMax = std::uint64_t{1} << 20;

  bool look(std::uint64_t done) noexcept;

  const std::atomic<Phase>& now_;
  const std::uint64_t slice_ns_;
  std::uint64_t look_at_ = 0, limit_ = 0, step_ = 1;
  std::uint64_t looked_ns_ = 0;  // 0: how long the last step took is not known
  SegmentLog* log_ = nullptr;
  Phase phase_ = Phase::warmup;
};

}  // namespace loam::workloads
