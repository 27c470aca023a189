// The half of machine.hpp for the simulated multicore (preset `sim`), in place of a processor's own. Its functions
// report to the simulator what its hooks cannot see. libloam-simulator.so defines them (simulator/hooks/seam.cpp); if
// nothing is simulated they do nothing.
#pragma once

#include "runtime/platform/simulator_calls.hpp"

#include <cstddef>
#include <cstdint>
