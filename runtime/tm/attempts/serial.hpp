// serial: one transaction runs while no other does.
//   A token admits one thread. The gate keeps new attempts out, and the thread with the token waits until the running
//   ones have ended. Behind the gate runs either an ordinary attempt, which then meets no conflict (serialise_after),
//   or the body in place, with plain accesses (irrevocable.hpp).
//   serial.A = lifecycle.A   gate set, announce_heavy(), announcements read / announcement, then the gate read
//   Cost      a membarrier (microseconds), and every other thread waits.
//   When not  long bodies; bodies that wait for another thread, which may be waiting at the gate.
#pragma once

#include "runtime/tm/descriptor.hpp"

namespace loam::tm::serial {

// The number of transactions that have run in place, plus changes of the table. Nothing else shows that these happened.
std::uint64_t generation() noexcept;

// Bits of Shared::slow_begin: why a begin has more to do.
inline constexpr std::uint32_t kGateClosed = 1, kPublishes = 2;
// Under auto: attempts that begin are of the scalable algorithm (switching.hpp).
inline constexpr std::uint32_t kScales = 4;

// Whether new attempts are kept out.
bool closed() noexcept;

// Whether this descriptor's thread is the one that has the token.
bool holds(const Descriptor& d) noexcept;

// Waits for the token, then for all other attempts. Call outside of attempts. Waits for ever if an attempt never ends.
void acquire(Descriptor& d) noexcept;
void release(Descriptor& d) noexcept;

// The same around a fork, by a thread that may have no descriptor: current is its own, or the detached one.
void acquire_for_fork(const Descriptor& current) noexcept;
void release_after_fork() noexcept;

// The same around a change of data that all attempts use. Transactions that wait in retry() run again afterwards.
void acquire_for_change() noexcept;
void release_after_change() noexcept;
// acquire_for_change(), unless another thread has the token, or attempts run for longer than this. returns whether the
// gate is closed
bool acquire_for_change_within(std::uint64_t limit_ns) noexcept;

// Leaves the announcement until the gate is open, and announces again.
void wait_until_open(Descriptor& d) noexcept;

// The body that runs in place. revocable: what it does is noted, and can be undone until irrevocable() is called.
void begin_in_place(Descriptor& d, bool revocable) noexcept;
bool revocable() noexcept;
void irrevocable(Descriptor& d) noexcept;
// Before a word is written in place.
void note(Descriptor& d, Word* address, Word mask) noexcept;
// Takes back what was noted since.
void undo_to(Descriptor& d, WriteEntry* mark) noexcept;
// Nothing is undone any more; the body is over.
void end_in_place(Descriptor& d) noexcept;

}  // namespace loam::tm::serial
