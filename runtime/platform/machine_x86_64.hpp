// The x86-64 half of machine.hpp that must be inline.
#pragma once

namespace loam::platform {

inline void pause() noexcept { __builtin_ia32_pause(); }

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

}  // namespace loam::platform
