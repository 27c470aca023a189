// unwritten: the accesses of an update that has not written yet.
//   A read of an update must first check whether the update has written the word. Before the first write this check is
//   not needed. So the update reads with the functions of a read-only transaction, and its first write changes to the
//   algorithm's functions. Updates of lists and trees read most of their words before the first write.
//   When not    algorithms whose updates log a read otherwise than their read-only transactions do (kReadsAlike,
//               tm/algorithm.hpp): their updates use the algorithm's functions from the start.
#pragma once

#include "runtime/tm/c/dispatch.hpp"

namespace loam::itm {

// returns the functions of an algorithm, changed for updates that have not written yet. The first write sets the
// thread's functions to Thread::in_software.
tm::open::Operations until_a_write(const tm::open::Operations& algorithm) noexcept;

}  // namespace loam::itm
