// The half of machine.hpp that the simulated multicore has in place of a processor's own (preset `sim`): what its hooks
// cannot see is told to it by calls. libloam-simulator.so defines them (simulator/hooks/seam.cpp); where nothing is
// simulated they do nothing.
#pragma once

#include "runtime/platform/simulator_calls.hpp"

#include <cstddef>
#include <cstdint>
