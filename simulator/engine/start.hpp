// The start of a simulated process (start.cpp).
#pragma once

namespace loam::simulator {

// Whether the program is still in its constructors: not simulated yet, but what they ask of the system must not differ
// from run to run, since allocators begin there.
bool starting() noexcept;

// Whether the system refused to fix addresses: results then vary a little between runs.
bool addresses_vary() noexcept;

}  // namespace loam::simulator
