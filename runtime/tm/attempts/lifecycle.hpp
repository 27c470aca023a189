// lifecycle: how an attempt begins and ends under any algorithm: the announcement that keeps freed memory readable, the
// gate of serial transactions, privatization, what happens to memory and handlers, statistics.
//   Privatization (Config::privatization = commit)
//     Algorithms that privatize safely by themselves do nothing for it. Under the others an attempt publishes its
//     snapshot before it reads. After its commit, an update waits for every running attempt with an older snapshot.
//     Such an attempt may still read unlinked data before it aborts, or may have committed and still be writing back. A
//     read-only transaction may have read from another one that something was unlinked (proxy privatization). So it
//     waits for older updates too, and for updates that are still waiting themselves. There is no cycle: an update
//     waits only for running attempts, and an attempt that waits does not count as running.
//   Privatization::shared: the same with a wait that commits share (grace.hpp). An attempt begins with a settled snapshot,
//     and does not wait if it has seen nothing newer.
//   Source    quiescence: Spear et al., "Privatization techniques for software transactional memory", PODC 2007 (brief
//             announcement), URCS TR 915; asymmetric announcement: machine.hpp.
#pragma once

#include "runtime/tm/attempts/memory.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm::lifecycle {

// Waits for serial transactions and publishes the attempt, if either is needed. Called inside the announcement.
void enter_reading_slowly(void* descriptor) noexcept;
void enter_update_slowly(void* descriptor) noexcept;
// The same of a read-only attempt, and takes its snapshot from the version clock.
void enter_reading_at_snapshot_slowly(void* descriptor) noexcept;

template <bool kUpdate>
[[gnu::always_inline]] inline void enter(Descriptor& d) noexcept {
  domain.enter(d.participant);
  // lifecycle.A: the announcement comes before this load, in serial::acquire() the store before announce_heavy() and
  // the look at announcements. [a serial transaction that does not run alone]
  if (platform::is_set(shared.slow_begin)) [[unlikely]]
    platform::call_preserving(kUpdate ? enter_update_slowly : enter_reading_slowly, &d);
}

// The same of a read-only attempt whose reads are valid at a value of the version clock.
// returns whether it has a snapshot; otherwise the caller takes the clock's value
[[gnu::always_inline]] inline bool enter_reading_at_snapshot(Descriptor& d) noexcept {
  domain.enter(d.participant);
  if (!platform::is_set(shared.slow_begin)) [[likely]]
    return false;  // lifecycle.A
  platform::call_preserving(enter_reading_at_snapshot_slowly, &d);
  return true;
}

// Descriptor::published: 0 outside; (snapshot << 1 | may write) of an attempt; kWaits | version of an update that has
// committed and waits for older attempts.
inline constexpr std::uint64_t kWaits = 1ULL << 63;

// The end of an attempt that has committed, and has released no memory and has no handlers.
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

// The end of an attempt that the algorithm has undone. Frees the blocks that it allocated, forgets those that it
// released, and counts the cause.
void aborted(Descriptor& d, AbortCause cause) noexcept;

// The end of a body that ran in place. The gate is still closed, so after_alone() runs handlers and frees memory later.
void committed_in_place(Descriptor& d) noexcept;
void aborted_in_place(Descriptor& d) noexcept;

// Call it when the gate is open again.
void after_alone(Descriptor& d) noexcept;

// Calls the handlers of the ended attempt for its outcome. They may run transactions.
void run_handlers(Descriptor& d) noexcept;
// The same while the transaction continues: its data for the next attempt, or for waiting, is not touched.
void run_handlers_aside(Descriptor& d) noexcept;

// The start of a closed part in the logs of allocated blocks, released blocks and handlers.
struct Mark {
  std::uint64_t allocated;
  platform::Stocks* stocks;  // of the surrounding attempt: a part, which can be undone alone, takes blocks another way
  std::size_t proposals;
  std::size_t handlers;
};
Mark mark(const Descriptor& d) noexcept;
void take_back(Descriptor& d, const Mark& mark) noexcept;

// Whether a conflict of the running attempt ends only its innermost part, which the caller then restarts. After some
// conflicts it returns false, because two attempts may each hold what the other's part needs.
bool restarts_part(Descriptor& d) noexcept;

// Called when a transaction begins within another one. Ends the program if the outer one was left by longjmp, or, in
// checked builds, if a signal interrupted it whose handler begins this one.
void check_nested(const Descriptor& d) noexcept;

// Returns to the driver, from within any part.
[[noreturn]] void restart(Descriptor& d, int code) noexcept;

// After the commit, data that the transaction unlinked may be returned to the system, in every mode: the commit waits
// until no attempt runs that ran beside it.
void privatize(Descriptor& d) noexcept;

// Adds a function to be called at the end of the attempt.
void add_handler(Descriptor& d, const Handler& handler) noexcept;

}  // namespace loam::tm::lifecycle

namespace loam::tm {

// A closed part of an attempt. It lies on the stack of the function that runs the part.
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
// After the end of a part, a restart goes to the part or attempt around it.
inline void leave_part(Descriptor& d, const Part& part) noexcept {
  static_cast<platform::Checkpoint&>(d) = part.outer;
  d.part = part.around;
  d.stocks = part.mark.stocks;
}

}  // namespace lifecycle

}  // namespace loam::tm
