// waiting: an attempt that asked to be run again once something that it has read has changed.
//   A waiter marks the records that it has read in a signature of kSignatureBits that all share. A commit wakes the
//   sleepers if it has written a marked one; as long as nobody sleeps it reads one word that nobody changes. Two
//   records may have one mark: who was woken for nothing, and is so more often than every kRareNs, looks by itself
//   every kPollNs for a while.
//   In vain   Where any commit wakes (algorithm.hpp: no waits_for()) only the body can tell if the wait is over. If it
//             is not, the waiter first pauses, for kPollNs at least and in proportion to what the run has cost, before
//             anything can wake it again: under 1 % of a core, as above, while others commit all the time. The price: a
//             change that comes in the pause is noticed at its end, within 1 ms for bodies of a few microseconds,
//             kPauseNsMax at most. A transaction that has not been woken in vain never pauses.
//   Source    the wake-up after validation: Harris, Marlow, Peyton Jones and Herlihy, PPoPP 2005; a signature (Bloom,
//             CACM 1970) instead of queues per variable.
//   When not  thousands of waiters, or waiters that have read thousands of records: then most marks are set, each
//             commit wakes all, and polling costs what a look costs (on virtual machines a sleep is dear: measured 5 %
//             of a core at kPollNs).
//   waiting.A  notify(): records released, then `sleepers` and the marks read / wait(): `sleepers` and the marks set,
//              announce_heavy(), then the read set looked at. [lost wake-up: each misses the other]
//   waiting.B  wake_all(): marks and `sleepers` cleared, then `wakes` counted / wait(): `wakes` read, then `sleepers`
//              and marks set, and the sleep ends if `wakes` has moved. [a sleeper whose marks are gone]
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm::waiting {

// A waiter that was woken for nothing looks by itself this often, or runs its body again at most this often.
inline constexpr std::uint64_t kPollNs = 800'000;
// A run that takes longer than kPauseNsMax / 256, with its begin, costs more than is said above rather than a longer
// pause.
inline constexpr std::uint64_t kPauseNsMax = 100'000'000;
inline constexpr std::uint64_t kRareNs = 10'000'000;
inline constexpr std::size_t kSignatureBits = 4096;

void wake_all() noexcept;
// The commit of the descriptor wrote the entries before d.woken_end.
void wake_readers(void* descriptor) noexcept;

// After a commit that wrote, once its records are released. end: behind its last entry
[[gnu::always_inline]] inline void notify(Descriptor& d, const WriteEntry* end) noexcept {
  if (platform::is_set(shared.sleepers)) [[unlikely]] {  // waiting.A
    d.woken_end = end;
    platform::call_preserving(wake_readers, &d);
  }
}
// The same where no records tell what was written.
[[gnu::always_inline]] inline void notify() noexcept {
  if (platform::is_set(shared.sleepers)) [[unlikely]]  // waiting.A
    platform::call_preserving(wake_all);
}

// Says that the caller waits for a change of `record`.
void mark(const Orec& record) noexcept;

// What an attempt waits for, as its algorithm sees it.
struct Awaited {
  bool (*unchanged)(Descriptor&);
  void (*mark_all)(Descriptor&);  // mark() of each record; nullptr: any commit wakes
};
template <class A>
inline constexpr Awaited kAwaited{&A::unchanged, [] {
                                    void (*marking)(Descriptor&) = nullptr;
                                    if constexpr (!any_commit_wakes<A>())
                                      marking = [](Descriptor& d) { A::waits_for(d, mark); };
                                    return marking;
                                  }()};

// Returns once something awaited has changed, or a serial transaction has come after d.generation, which was read
// inside the attempt. Call outside of attempts, holding nothing.
void wait(const Awaited& awaited, Descriptor& d) noexcept;

}  // namespace loam::tm::waiting
