// Zeroed: says to a constructor that the object's memory is zero, as new pages of the system are. It writes nothing
// that is zero, so that no page is touched before it is needed: a thread's heap is six pages, of which a thread that
// allocates little needs two.
#pragma once

namespace loam::heap {

struct Zeroed {};

}  // namespace loam::heap
