// What machine_simulated.hpp calls and libloam-simulator.so defines, in C so that both sides need no type in common.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// The processor waits a moment, as its pause instruction does.
void loam_simulator_pause();
// The clock of the core that the caller runs on.
std::uint64_t loam_simulator_ticks();
// An attempt begins again: registers come back, and the pipeline is empty.
void loam_simulator_restart();
// Whether something is simulated at all.
int loam_simulator_active();
// The counters of the caller's core: how many there are, their names, their values now.
std::size_t loam_simulator_counters();
const char* loam_simulator_counter_name(std::size_t index);
std::uint64_t loam_simulator_counter(std::size_t index);
// What a result must say of a simulated run, valid where it is active.
const char* loam_simulator_machine();
std::uint64_t loam_simulator_seed();
const char* loam_simulator_costs();  // of the instructions between accesses: "per access" or "per block"
// How calls of malloc and free are charged: "instrumented" as all code is, "fixed", or "counted: ALLOCATOR VERSION".
const char* loam_simulator_allocation();
int loam_simulator_addresses_vary();  // not 0: the system did not let addresses be fixed
// Hardware transactions: begin returns ~0 where one has begun, and once more, with the status of x86's RTM, where it
// aborted; always 0 where the machine has none.
unsigned loam_simulator_transaction_begin();
void loam_simulator_transaction_commit();
void loam_simulator_transaction_abort(unsigned code);
int loam_simulator_in_transaction();
int loam_simulator_has_transactions();
}
