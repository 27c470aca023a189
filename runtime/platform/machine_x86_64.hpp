// The x86-64 half of machine.hpp that must be inline.
#pragma once

#include <atomic>
#include <cstdint>

namespace loam::platform {

inline void pause() noexcept { __builtin_ia32_pause(); }

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

// word.load(relaxed) == expected, as one comparison with memory: GCC loads an atomic into a register first, which is an
// instruction more for every transactional read.
inline bool holds(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept {
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
  return word.load(std::memory_order_relaxed) == expected;
#else
  bool equal;
  asm volatile("cmpq %2, %1" : "=@cce"(equal) : "m"(word), "r"(expected));
  return equal;
#endif
}

}  // namespace loam::platform
