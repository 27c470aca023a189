// Destructors of thread-local variables and of pthread keys.
#pragma once

#include "simulator/engine/thread.hpp"

namespace loam::simulator {

// Those of the current thread, as a part of it: another thread may hold a lock that they need.
void run_destructors(Thread& thread);

}  // namespace loam::simulator
