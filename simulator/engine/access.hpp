// From a hook to the model: decides when each access of the program happens, and what it costs.
//   The order matters; another one has lost updates: first let the other cores run, then ask the model, then write the
//   undo log of a hardware transaction, then do the program's own store, which follows the hook.
#pragma once

#include "simulator/engine/scheduler.hpp"
#include "simulator/model/line_times.hpp"
#include "simulator/model/model.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::simulator {

using Kind = Access::Kind;

extern Model* model;
extern LineTimes* line_times;  // nullptr: not asked for

extern bool uses_transactions;       // of the hardware; the machine has them
extern std::uint64_t access_cycles;  // of the instructions beside an access, where blocks of them are not counted
// Where they are (simulator/plugin): thousandths of a cycle for each; else 0.
extern std::uint64_t instruction_milli;
extern "C" std::uint64_t loam_simulator_instructions;  // counted by the program since the last hook

// The time of the instructions since the last hook.
void charge_instructions() noexcept;

// One access; the model walks the lines that it crosses.
void access_line(std::uintptr_t address, unsigned bytes, Kind kind, std::uintptr_t pc);
// A run of bytes, as copies touch them: 16 at a time.
void access_range(const void* start, std::size_t bytes, Kind kind, const void* pc);

inline bool simulated() noexcept { return now.thread != nullptr && now.thread->native == 0; }

[[gnu::always_inline]] inline void access(const volatile void* at, unsigned bytes, Kind kind, const void* pc) {
  if (!simulated()) [[unlikely]]
    return;
  access_line(reinterpret_cast<std::uintptr_t>(at), bytes, kind, reinterpret_cast<std::uintptr_t>(pc));
}

// Time that passes without an access.
inline void spend(std::uint64_t cycles) {
  if (!simulated()) return;
  if (instruction_milli != 0) [[unlikely]]
    charge_instructions();
  scheduler.spend(cycles);
}

// Code whose own accesses are not simulated: libc, a native allocator.
class Native {
 public:
  Native() noexcept : thread_(now.thread) {
    if (thread_ != nullptr) ++thread_->native;
  }
  ~Native() {
    if (thread_ != nullptr) --thread_->native;
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

 private:
  Thread* const thread_;
};

}  // namespace loam::simulator

// Where the hook was called from.
#define LOAM_CALLER __builtin_return_address(0)
