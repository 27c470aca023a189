// waiting: an attempt that asked to be run again once something that it has read has changed.
//   Commits wake sleepers; what woke for nothing looks again after kPollNs for a while, so that frequent commits of
//   others cost neither side: the writer reads one word that nobody changes, the waiter uses under 1 % of a core.
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

void wake() noexcept;

// After a commit that wrote, once its records are released.
[[gnu::always_inline]] inline void notify() noexcept {
  if (platform::is_set(shared.sleepers)) [[unlikely]]  // waiting.A
    platform::call_preserving(wake);
}

// Returns once unchanged(argument) is false, or a serial transaction has come after `generation`, which the caller read
// inside the attempt. Call outside of attempts, holding nothing.
void wait(bool (*unchanged)(Descriptor&), Descriptor& argument, std::uint64_t generation) noexcept;

}  // namespace loam::tm::waiting
