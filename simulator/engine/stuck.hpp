// Ends a program that makes no progress. The message names each thread, what it waits for, and which thread holds that.
#pragma once

#include <cstdint>

namespace loam::simulator {

[[noreturn]] void fail_deadlocked();
[[noreturn]] void fail_stuck(std::uint64_t cycles);

}  // namespace loam::simulator
