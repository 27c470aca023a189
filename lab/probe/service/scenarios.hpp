#pragma once
// What a long-running service does to its allocator, one scenario in each file.

#include <cstdint>

#include "course.hpp"

namespace service {

// drift.cpp: the size of what is stored drifts while the amount stays the same, then nearly all of it is freed.
//   threads: that replace blocks; operations: of each thread in each phase
// Samples: "phase" at the end of each of the ten phases, "freed", and "later" 1.5 s after it.
void drift(Course& course, Live& live, int threads, long operations, std::uint64_t seed);

// idle.cpp: four threads allocate `mib` together, free all of it, and then only sleep.
//   least, most: bytes of the blocks; threads_end: whether the threads end before the process is idle
// Samples: "full", then "idle" 0, 1, 2 and 5 s after the last free.
void idle(Course& course, Live& live, long mib, long least, long most, bool threads_end);

// ends.cpp: threads come and go, one after the other, each with blocks that destructors of its keys free.
//   count: threads; detached: whether nobody joins them
// Samples: "begun" after a tenth of the threads, "ended" after all of them.
void ends(Course& course, Live& live, long count, bool detached);

// day.cpp: a server's day in `seconds`: requests, sessions and a cache, by the hour; a batch at night.
//   rate: requests a second in the busiest hour, of all workers together
// Samples: "hour" at the end of each of 24 hours.
void day(Course& course, Live& live, double seconds, double rate, std::uint64_t seed);

}  // namespace service
