// Stores that a processor has an instruction for, and a compiler does not find.
#pragma once

namespace loam::platform {

// Two words in the place of what was there. On AArch64 by one instruction, which GCC 12 does not find everywhere.
template <class Pair, class First, class Second>
[[gnu::always_inline]] inline void store_pair(Pair& pair, First first, Second second) noexcept {
  static_assert(sizeof(Pair) == sizeof first + sizeof second);
#ifdef __aarch64__
  static_assert(sizeof first == 8 && sizeof second == 8);
  asm("stp %1, %2, %0" : "=Ump"(pair) : "r"(first), "r"(second));
#else
  pair = Pair{first, second};
#endif
}

}  // namespace loam::platform
