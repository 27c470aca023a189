// The process that explores (LOAM_SIM_CHECK=exhaustive): it runs the program again and again, each time in a child
// process, and prints at the end how many executions there were and what the program printed.
#pragma once

#include "simulator/engine/exploration.hpp"

namespace loam::simulator {

// Returns in each child, before the program's main() has begun. The process that called it ends in here: with the status of
// the first execution that failed, or with 0 when the search is over.
// With LOAM_SIM_SCHEDULE nothing is searched: returns at once, for the one execution with these choices.
Explored& explore();

}  // namespace loam::simulator
