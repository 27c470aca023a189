// The settings of a run, from the environment. Without LOAM_SIM_MACHINE nothing is simulated: the program runs on the
// host, with hooks that do nothing.
//   LOAM_SIM_MACHINE     the machine, as key=value lines (simulator/model/machine.hpp)
//   LOAM_SIM_SEED        schedule, start skew and address offset; default 1
//   LOAM_SIM_QUANTUM     in place of the machine's engine.quantum_cycles; 0: exact order everywhere
//   LOAM_SIM_ALLOCATION  what a malloc and a free cost whose code is not instrumented (engine/call_costs.hpp): "60,40"
//   LOAM_SIM_CYCLES_MAX  simulated cycles after which a program counts as stuck
//   LOAM_SIM_ENGINE      fibers (default), or threads: a token between operating system threads, to check the fibers
//   LOAM_SIM_CHECK       random or pct: no costs, but a schedule by the seed, older values and races (engine/checker.hpp);
//                        exhaustive: all schedules of a small program, one after the other (engine/exploration.hpp)
//   LOAM_SIM_BOUND       exhaustive: the largest number of departures of an execution; default 3
//   LOAM_SIM_EXECUTIONS_MAX  exhaustive: it stops, and says so, after so many executions; default 200 000
//   LOAM_SIM_SCHEDULE    exhaustive: repeats one execution, with the schedule that a failure printed
//   LOAM_SIM_LINE_TIMES  also counts for each line how long cores were at it while another one used it (model/line_times.hpp):
//                        nanoseconds before an access in which another core's counts; default 0: not counted
//   LOAM_SIM_STATISTICS  a file that gets one line of JSON when the program ends
#pragma once

#include <cstdint>
#include <optional>

namespace loam::simulator {

enum class Check : std::uint8_t { none, random, pct, exhaustive };

struct Settings {
  const char* machine = nullptr;
  const char* statistics = nullptr;
  const char* schedule = nullptr;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> quantum;
  std::uint64_t cycles_max = std::uint64_t{1} << 42;
  bool threads = false;
  Check check = Check::none;
  unsigned bound = 3;
  std::uint64_t executions_max = 200'000;
  std::uint64_t line_times_ns = 0;
};

extern Settings settings;

// Ends the program with a message where a value cannot be read.
void read_settings(const char* const* environment);

}  // namespace loam::simulator
