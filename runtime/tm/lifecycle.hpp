// lifecycle: what begins and ends an attempt whatever the algorithm: the announcement that keeps freed memory readable,
// the gate of serial transactions, privatization, the fate of memory and handlers, statistics.
//   Privatization (Config::privatization = commit)
//     Before it reads, an attempt publishes its snapshot; an update that has committed waits for every attempt whose
//     snapshot is older, a read-only one for older updates, which may still be writing back what it has seen unlinked.
//     Nobody is published while it waits.
//   Source    quiescence: Spear et al., "Privatization techniques for software transactional memory", PODC 2007 (brief
//             announcement), URCS TR 915; asymmetric announcement: machine.hpp.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/memory.hpp"
#include "runtime/tm/runtime.hpp"
#include "runtime/tm/waiting.hpp"

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
// version: attempts older than it may have seen what this one has changed; with shared stamps, the stamp and 1
void committed_special(Descriptor& d, std::uint64_t version) noexcept;

// The algorithm has taken all effects back. Frees what was allocated, forgets what was released, counts the cause.
void aborted(Descriptor& d, AbortCause cause) noexcept;

// After a transaction that ran alone, which has committed whatever happened.
void finished_alone(Descriptor& d) noexcept;

// What a part that can be taken back has allocated, released and left to handlers begins here.
struct Mark {
  std::uint64_t allocated;
  std::size_t proposals;
  std::size_t handlers;
};
Mark mark(const Descriptor& d) noexcept;
void take_back(Descriptor& d, const Mark& mark) noexcept;

// Back to the driver, from within any part.
[[noreturn]] void restart(Descriptor& d, int code) noexcept;

// Keeps a function for the end of the attempt.
void add_handler(Descriptor& d, const Handler& handler) noexcept;

}  // namespace loam::tm::lifecycle

namespace loam::tm {

// A part of an attempt that can be taken back. On the stack of who runs it.
struct Part {
  platform::Checkpoint outer;  // where the attempt, or the part around this one, restarts
  Part* around;
  lifecycle::Mark mark;
};

}  // namespace loam::tm
