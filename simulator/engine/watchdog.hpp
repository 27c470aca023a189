// Finds a thread that runs without reaching a hook: code that was compiled without instrumentation, or a loop that only
// computes. Simulated time does not advance meanwhile, so no other thread would ever run.
#pragma once

#include <cstdint>

namespace loam::simulator {

extern std::uint64_t progress;
inline void note_progress() noexcept { ++progress; }

// Looks every three seconds of processor time.
void start_watchdog();

}  // namespace loam::simulator
