// What one compiler spells differently from another.
#pragma once

// A function whose calls are made as written: it is not copied into its callers, and they assume nothing of its body.
#ifdef __clang__
#define LOAM_CALLED_AS_WRITTEN [[gnu::noinline]]
#else
#define LOAM_CALLED_AS_WRITTEN [[gnu::noipa]]
#endif

// The attributes that make a declaration another name of a function. GCC warns where it lacks what the function has.
#ifdef __clang__
#define LOAM_ALIAS_OF(name, function) alias(name)
#else
#define LOAM_ALIAS_OF(name, function) alias(name), copy(function)
#endif

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
