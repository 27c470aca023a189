// unwritten: the accesses of an update that has not written yet.
//   It has no value of its own that a read would have to look for. So it reads as a read-only transaction does, and its
//   first write goes over to the algorithm's functions. Updates of lists and trees read most of their words before.
//   When not    algorithms whose updates leave another trace of a read (kReadsAlike, tm/algorithm.hpp): they have their
//               own functions from the begin on.
#pragma once

#include "runtime/tm/c/dispatch.hpp"

namespace loam::itm {

// The functions of an algorithm, but for what an update does up to its first write. That one makes Thread::in_software
// the thread's functions.
tm::open::Operations until_a_write(const tm::open::Operations& algorithm) noexcept;

}  // namespace loam::itm
