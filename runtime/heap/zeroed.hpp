// Zeroed: tells a constructor that the object's memory is zero, as new pages of the system are. The constructor then
// writes no zeroes, so it touches no page before the page is needed. Example: a thread's heap is six pages long, and a
// thread that allocates little needs two of them.
#pragma once

namespace loam::heap {

struct Zeroed {};

}  // namespace loam::heap
