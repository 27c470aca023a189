// waiting: an attempt that asked to be run again once something that it has read has changed.
//   Commits wake sleepers; what woke for nothing looks again after kPollNs for a while, so that frequent commits of
//   others cost neither side: the writer reads one word that nobody changes, the waiter uses under 1 % of a core.
//   In vain   Where any commit wakes (algorithm.hpp: kAnyCommitWakes) only the body can tell if the wait is over. If it
//             is not, the waiter first pauses, for kPollNs at least and in proportion to what the run has cost,
//             before anything can wake it again: under 1 % of a core, as above, while others commit all the time.
//             The price: a change that comes in the pause is noticed at its end, within 1 ms for bodies of a few
//             microseconds, kPauseNsMax at most. A transaction that has not been woken in vain never pauses.
//   Source    the wake-up after validation: Harris, Marlow, Peyton Jones and Herlihy, PPoPP 2005; one word and polling
//             instead of queues per variable, so that a commit never walks its write set for waiters.
//   When not  thousands of waiters: each commit that finds the word set wakes all of them.
//   waiting.A  notify(): records released, then `sleepers` read / wait(): `sleepers` set, announce_heavy(), then the
//              read set looked at. [lost wake-up: each misses the other]
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm::waiting {

// A waiter that was woken for nothing looks by itself this often, or runs its body again at most this often.
inline constexpr std::uint64_t kPollNs = 800'000;
// A run that takes longer than kPauseNsMax / 256, with its begin, costs more than is said above rather than a longer
// pause.
inline constexpr std::uint64_t kPauseNsMax = 100'000'000;

void wake() noexcept;

// After a commit that wrote, once its records are released.
[[gnu::always_inline]] inline void notify() noexcept {
  if (platform::is_set(shared.sleepers)) [[unlikely]]  // waiting.A
    platform::call_preserving(wake);
}

// Returns once unchanged(argument) is false, or a serial transaction has come after `generation`, which the caller read
// inside the attempt. Call outside of attempts, holding nothing.
void wait(bool (*unchanged)(Descriptor&), Descriptor& argument, std::uint64_t generation,
          bool any_commit_wakes) noexcept;

}  // namespace loam::tm::waiting
