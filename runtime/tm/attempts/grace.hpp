// grace: a wait for running attempts that committing threads share (Privatization::shared).
//   Threads belong to groups, those of neighbouring cores. Whoever waits takes a free role of its group, or none:
//     the collector  scans the group: it returns once each member that it found inside an attempt has left that attempt
//     the asker      goes from group to group. It notes how many scans a group has begun, and on its next visit looks
//                    whether a later one has ended
//   Each visit is a numbered step. What a group's asker has cleared is the last step before which every group began a
//   scan that has ended since. A commit notes the step that it finds, and waits until the next one is cleared. So a line
//   is read by the members of its group and by one thread of each other group.
//   A commit that finds no role and no progress for long scans all threads itself: its asker may not be running.
//   Settled     The clock at a step that has been cleared. All commits with this version or an older one have ended, and
//               so has each attempt that read before their locks. So an attempt that has seen nothing newer need not wait.
//   Source      grace periods that one thread runs for many callers: McKenney and Slingwine, "Read-copy update", PDCS
//               1998; trees of them: Linux, Documentation/RCU/Design. Here nobody is asked to announce anything.
//   Cost        an attempt: two stores and a fence on a line that its group's collector reads. A commit that wrote: the
//               time of one or two rounds over the groups, about 1.5 microseconds with eight groups of eight.
//   When not    few threads: each commit may as well look at all of them (Privatization::commit).
// Memory orders; in brackets the failure without the pair
//   grace.A  an attempt stores `running`, full_fence(), then reads / a scan stores `begun`, full_fence(), then loads
//            `running` [the scan does not see the attempt, and the attempt does not see the commit]
//   grace.B  a commit writes back, full_fence(), then loads the step / the asker stores the step, full_fence(), then loads
//            `begun` [the scan that is counted on began before the commit]. With A: the commit's fence, the asker's, the
//            scan's and the attempt's come in this order, or the scan sees the attempt
//   grace.C  `running` and the end of a list of members are stored with release, `ended` and `cleared` too / loaded with
//            acquire [the commit returns without seeing what an ended attempt has written back]
//   grace.D  the clock is loaded with seq_cst before the step's fence / lock CAS and clock of the commit (P3 of dctl.hpp)
//            [a version counts as settled whose commit the scan's attempts have not seen]; `settled` is stored with release
//            and loaded with acquire, as in C
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <cstdint>

namespace loam::tm::grace {

// A new descriptor, of a thread that runs on `core`: it belongs to the group of this core for good. (A later thread with
// this descriptor may run elsewhere, which costs time only.)
void join(Descriptor& d, unsigned core) noexcept;

// Around an attempt, within the announcement. enter() before the attempt reads, leave() after it has written all back, or
// undone it.
void enter(Descriptor& d) noexcept;
void leave(Descriptor& d) noexcept;
inline bool is_inside(const Descriptor& d) noexcept {
  return d.running.load(std::memory_order_relaxed) % 2 == 1;  // relaxed: own
}

// The newest clock value that is settled, as far as the thread's group knows.
std::uint64_t settled(const Descriptor& d) noexcept;

// After leave(): returns once each attempt has ended that may have read what was there before commits up to `version`,
// those that this thread's last attempt has seen or made.
void wait(const Descriptor& d, std::uint64_t version) noexcept;

// In the child of a fork: nobody has a role.
void forget_roles() noexcept;

}  // namespace loam::tm::grace
