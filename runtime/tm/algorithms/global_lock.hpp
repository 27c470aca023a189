// global-lock: one lock around every transaction, with an undo log.
//   It is what a mutex gives, with the semantics of transactions: cancel, exceptions that undo, parts, retry, handlers,
//   memory that follows the outcome. Every other algorithm has to beat it. Where nothing runs in parallel anyway, it is
//   the one to use.
//   Source      single-lock atomicity: Larus and Rajwar, "Transactional Memory", 2006; the lock: Drepper, "Futexes are
//               tricky", 2011 (three states), after a short spin.
//   Guarantees  opacity, publication and privatization safe, strong progress: no attempt ever aborts by itself.
//               Not fair: a thread may be overtaken while it wakes up.
//   Conflicts   none; a begin waits. The mapping of ownership records and the contention manager do not apply.
//   Cost        one locked exchange to begin and one to end; a read is a load, a write one log entry.
//   When not    transactions that could run in parallel. retry() beside frequent commits: no record says what was
//               written, so every commit that wrote wakes the sleepers; after a spurious wake-up the next change may be
//               noticed some milliseconds late (waiting.hpp).
// Memory orders; in brackets the failure without the pair
//   global_lock.A  exchange(release) in unlock() / exchange or CAS(acquire) in lock()
//                  [the next owner reads what was there before the last one's writes]
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms/parts/in_place.hpp"

#include <atomic>

namespace loam::tm {

// One lock for all transactions of the process.
class OneLock {
 public:
  static void attach(Descriptor&) noexcept {}

  static void lock() noexcept {
    std::uint32_t expected = kFree;
    // global_lock.A
    if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        [[likely]]
      return;
    lock_slowly();
  }

  static void unlock() noexcept {
    // global_lock.A
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]]
      platform::futex_wake(state_, 1);
  }

  static bool unchanged(Descriptor& d) noexcept {
    return version_clock.now.load(std::memory_order_acquire) == d.snapshot;  // waiting.A
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kAwaited = 2;  // awaited: held, and somebody sleeps
  static constexpr unsigned kSpins = 6;                               // rounds of 1, 2, 4 ... pauses
#ifdef LOAM_CHECKED  // a test that runs one thread at a time gets its turns at the point between two sleeps
  static constexpr std::uint64_t kSleepNs = 5'000;
#else
  static constexpr std::uint64_t kSleepNs = ~0ULL;
#endif

  [[gnu::noinline, gnu::cold]] static void lock_slowly() noexcept {
    for (unsigned round = 0; round < kSpins; ++round) {
      for (unsigned i = 0; i < (1U << round); ++i) platform::pause();
      LOAM_POINT("tm.waiting");
      // relaxed: only decides whether to try
      if (state_.load(std::memory_order_relaxed) != kFree) continue;
      std::uint32_t expected = kFree;
      // global_lock.A
      if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) return;
    }
    // Who has slept cannot know whether others still do, so it takes the lock as awaited: one wake too many at most.
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {  // global_lock.A
      LOAM_POINT("tm.waiting");
      platform::futex_wait(state_, kAwaited, kSleepNs);
    }
  }

  alignas(platform::kApartBytes) inline static constinit std::atomic<std::uint32_t> state_{kFree};
};

template <bool kBlame>
struct GlobalLock : InPlace<kBlame, OneLock> {
  static constexpr AlgorithmDescription kDescription{
      .name = "global-lock",
      .summary = "one lock around every transaction, undo log",
      .paper = "",
      .guarantees = "opacity; publication and privatization safe; never aborts by itself",
      .overlaps = false};
};

}  // namespace loam::tm
