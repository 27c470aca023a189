// lifecycle: how an attempt begins and ends under any algorithm: the announcement that keeps freed memory readable, the
// gate of serial transactions, privatization, what happens to memory and handlers, statistics.
//   Privatization (Config::privatization = commit)
//     Algorithms that privatize safely by themselves do nothing for it. Under the others an attempt publishes its snapshot before it reads. After its commit, an update waits for every running attempt
//     with an older snapshot. One of these that will abort may still read what was unlinked; one that has committed may
//     still be writing it back. A read-only transaction may have learnt from another one that something was unlinked
//     (proxy privatization). So it waits for older updates too, and for updates that are still waiting themselves.
//     There is no cycle: an update waits only for running attempts, and an attempt that waits does not run.
//   Source    quiescence: Spear et al., "Privatization techniques for software transactional memory", PODC 2007 (brief
//             announcement), URCS TR 915; asymmetric announcement: machine.hpp.
#pragma once

#include "runtime/tm/attempts/memory.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm::lifecycle {

// Lets serial transactions pass and publishes the attempt, as far as there is need. Called inside the announcement.
void enter_reading_slowly(void* descriptor) noexcept;
void enter_update_slowly(void* descriptor) noexcept;

template <bool kUpdate>
[[gnu::always_inline]] inline void enter(Descriptor& d) noexcept {
  domain.enter(d.participant);
  // lifecycle.A: the announcement comes before this load, in serial::acquire() the store before announce_heavy() and
  // the look at announcements. [a serial transaction that does not run alone]
  if (platform::is_set(shared.slow_begin)) [[unlikely]]
    platform::call_preserving(kUpdate ? enter_update_slowly : enter_reading_slowly, &d);
}

// Descriptor::published: 0 outside; (snapshot << 1 | may write) of an attempt; kWaits | version of an update that has
// committed and waits for older attempts.
inline constexpr std::uint64_t kWaits = 1ULL << 63;

// The attempt has committed and has nothing to hand over.
[[gnu::always_inline]] inline void committed_reading(Descriptor& d) noexcept {
  ++d.statistics.commits;
  d.mode = Mode::idle;
  domain.leave(d.participant);
}
[[gnu::always_inline]] inline void committed(Descriptor& d) noexcept {
  d.allocated_count = 0;
  committed_reading(d);
}

// The same of an attempt whose descriptor is `special`: it has released memory, has handlers, or must wait for others.
// version: attempts older than it may have seen what this one has changed; with shared stamps, the stamp and 1. Not
// looked at under algorithms that privatize safely
void committed_special(Descriptor& d, std::uint64_t version) noexcept;

// The algorithm has taken all effects back. Frees what was allocated, forgets what was released, counts the cause.
void aborted(Descriptor& d, AbortCause cause) noexcept;

// The end of a body that ran in place. The gate is still closed: handlers and freed memory are left to after_alone().
void committed_in_place(Descriptor& d) noexcept;
void aborted_in_place(Descriptor& d) noexcept;

// Once the gate is open again.
void after_alone(Descriptor& d) noexcept;

// Calls what the ended attempt has left to handlers of its outcome. They may run transactions, also in between.
void run_handlers(Descriptor& d) noexcept;
// The same while the transaction goes on: what it keeps for its next attempt, or to wait, is not touched.
void run_handlers_aside(Descriptor& d) noexcept;

// What a part that can be taken back has allocated, released and left to handlers begins here.
struct Mark {
  std::uint64_t allocated;
  platform::Stocks* stocks;  // of whom it is a part: a part takes from them by another way (it may be taken back alone)
  std::size_t proposals;
  std::size_t handlers;
};
Mark mark(const Descriptor& d) noexcept;
void take_back(Descriptor& d, const Mark& mark) noexcept;

// Whether a conflict of the running attempt ends only its innermost part, which the caller then restarts. Not for ever:
// two attempts may each hold what the other's part needs.
bool restarts_part(Descriptor& d) noexcept;

// Of a transaction that begins within another: ends the program if that one was left by longjmp, or, in checked builds,
// if it was interrupted by a signal whose handler begins this one.
void check_nested(const Descriptor& d) noexcept;

// Back to the driver, from within any part.
[[noreturn]] void restart(Descriptor& d, int code) noexcept;

// What the transaction unlinks may be given back to the system once it has returned, in every mode: its commit waits
// until no attempt runs that ran beside it.
void privatize(Descriptor& d) noexcept;

// Keeps a function for the end of the attempt.
void add_handler(Descriptor& d, const Handler& handler) noexcept;

// Keeps the value of a private variable, which goes back to it if the attempt, or the innermost part, is taken back.
void keep(Descriptor& d, void* address, std::size_t bytes) noexcept;

}  // namespace loam::tm::lifecycle

namespace loam::tm {

// A part of an attempt that can be taken back. On the stack of who runs it.
struct Part {
  platform::Checkpoint outer;  // where the attempt, or the part around this one, restarts
  Part* around;
  lifecycle::Mark mark;
  unsigned conflicts = 0;  // how often it was restarted by itself
};

namespace lifecycle {

inline void enter_part(Descriptor& d, Part& part) noexcept {
  d.part = &part;
  d.stocks = memory::stocks_within(d.stocks);
}
// Whoever restarts now is the one around it.
inline void leave_part(Descriptor& d, const Part& part) noexcept {
  static_cast<platform::Checkpoint&>(d) = part.outer;
  d.part = part.around;
  d.stocks = part.mark.stocks;
}

}  // namespace lifecycle

}  // namespace loam::tm
