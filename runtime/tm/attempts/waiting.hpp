// waiting: a transaction that called retry() sleeps until something it has read changes.
//   All waiters share one signature of kSignatureBits. A waiter sets a bit for each record that it has read. A commit
//   wakes all sleepers if the bit of a record that it wrote is set. While no thread sleeps, a commit reads one word
//   that does not change. Two records may have the same bit, so wake-ups can be spurious. A waiter with spurious
//   wake-ups more often than every kRareNs polls for a while instead of sleeping, every kPollNs.
//   Pauses    Under an algorithm without waits_for() (algorithm.hpp) any commit wakes, and only the body can tell
//             whether the wait is over. If it is not, the waiter first pauses, deaf to wake-ups, in proportion to the
//             time that the run took and for at least kPollNs. So it uses under 1 % of a core even beside constant
//             commits. The price: a change during the pause is noticed at its end, after at most 1 ms for bodies of a
//             few microseconds, and at most kPauseNsMax. A transaction without spurious wake-ups never pauses.
//   Source    wake-up after validation: Harris, Marlow, Peyton Jones and Herlihy, PPoPP 2005; a signature (Bloom, CACM
//             1970) in place of a queue per variable.
//   When not  thousands of waiters, or waiters that have read thousands of records. Then most bits are set, every
//             commit wakes all waiters, and each poll costs a check and a short sleep (which is expensive on virtual
//             machines: measured 5 % of a core at kPollNs).
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

// A waiter that was woken without a change checks in this interval, or runs its body again at most once per interval.
inline constexpr std::uint64_t kPollNs = 800'000;
// The longest pause. A run of the body that takes longer than kPauseNsMax / 256 therefore costs more of a core than is
// said above.
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
// The same for algorithms without records: any commit that wrote.
[[gnu::always_inline]] inline void notify() noexcept {
  if (platform::is_set(shared.sleepers)) [[unlikely]]  // waiting.A
    platform::call_preserving(wake_all);
}

// Sets the bit of `record` in the signature: the caller waits for a change of it.
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
// Of the attempt that has asked to wait.
template <class A>
const Awaited& awaited_of([[maybe_unused]] const Descriptor& d) noexcept {
  if constexpr (requires { A::awaits(d); })
    return A::awaits(d);
  else
    return kAwaited<A>;
}

// Returns once something awaited has changed, or a serial transaction has come after d.generation, which was read
// inside the attempt. Call outside of attempts, holding nothing.
void wait(const Awaited& awaited, Descriptor& d) noexcept;

}  // namespace loam::tm::waiting
