// The counts of the simulation, for the program's own records, for tests and for the lab.
#pragma once

namespace loam::simulator {

// Appends one line of JSON to LOAM_SIM_STATISTICS: totals, each core's counts and clock, the lines that moved most.
void write_statistics();

}  // namespace loam::simulator
