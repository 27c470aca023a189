// The program's time: the clock of the simulated core that asks.
#pragma once

#include <cstdint>
#include <ctime>

namespace loam::simulator {

std::uint64_t clock_ns(clockid_t clock);
// The core's clock when the program's clock shows this; at least 1, so that it differs from "do not wait".
std::uint64_t cycles_until(clockid_t clock, const timespec& time);
// ... after this time from now.
std::uint64_t cycles_after(const timespec& duration);

}  // namespace loam::simulator
