// words: plain access to the memory behind transactional words.
#pragma once

#include "runtime/tm/types.hpp"

#include <atomic>

namespace loam::tm {

// Loads the whole word around a value that may end before the word does. The bytes behind the value are masked out, or
// never written back. The address sanitizer would report an overrun, so it does not check this function.
#ifdef LOAM_ASAN
[[gnu::no_sanitize_address, gnu::noinline]]
#endif
inline Word load_whole(const Word* word) noexcept {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// Stores only the bytes of `mask`, because other bytes of the word may belong to another object. release
inline void store_masked(Word* address, Word value, Word mask) noexcept {
  if (mask == ~Word{0}) [[likely]] {
    std::atomic_ref<Word>(*address).store(value, std::memory_order_release);
    return;
  }
  auto* const bytes = reinterpret_cast<std::uint8_t*>(address);
  for (std::size_t i = 0; i < kWordBytes; ++i)
    if ((mask >> (i * 8)) & 1)
      std::atomic_ref<std::uint8_t>(bytes[i]).store(static_cast<std::uint8_t>(value >> (i * 8)),
                                                    std::memory_order_release);
}

}  // namespace loam::tm
