// The simulator's own memory, at a fixed address far from the program's. If the simulator used the program's allocator,
// it would move the program's blocks, and addresses are an input of the simulation.
//   operator new of this shared object (arena.cpp, not exported) allocates from this memory, so its containers do, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loam::simulator {

inline constexpr std::uintptr_t kStackStart = 0x6000'0000'0000;  // of the simulated main thread
inline constexpr std::size_t kStackBytes = std::size_t{64} << 20;
inline constexpr std::uintptr_t kArenaStart = 0x6100'0000'0000;

// Maps zeroed pages at exactly this address, backed at first touch; ends the program where they are taken.
void* map_at(std::uintptr_t address, std::size_t bytes) noexcept;

// Memory aligned to 64 bytes, zeroed, never given back.
void* take(std::size_t bytes) noexcept;

}  // namespace loam::simulator
