// words: plain access to the memory behind transactional words.
#pragma once

#include "runtime/tm/types.hpp"

#include <atomic>

namespace loam::tm {

// The word around a value that may end before the word does: what lies behind it is masked out, or never written back.
// Address sanitizer calls that an overrun, so it is kept from looking.
#ifdef LOAM_ASAN
[[gnu::no_sanitize_address, gnu::noinline]]
#endif
inline Word load_whole(const Word* word) noexcept {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// Stores whole bytes, those of `mask` alone: what lies beside them may be somebody else's. release
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
