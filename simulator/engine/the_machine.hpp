// The machine of this run, from LOAM_SIM_MACHINE.
#pragma once

#include "simulator/model/machine.hpp"

#include <cstdint>

namespace loam::simulator {

// Read at the first call; ends the program with key, value and what is allowed where it is no possible machine.
const Machine& the_machine();
// Whether what passes between accesses are the instructions that the program counts: the machine asks for it, and this
// preset has them counted (simulator/plugin).
bool counts_blocks();

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// Between the clock of a core and the program's.
std::uint64_t ns_of(std::uint64_t cycles) noexcept;
std::uint64_t cycles_of(std::uint64_t ns) noexcept;  // ~0 where it does not fit

}  // namespace loam::simulator
