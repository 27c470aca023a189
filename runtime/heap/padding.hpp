// The bytes that a guarded heap knows: the padding behind a program's bytes, and the zeroes of what is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loam::heap {

inline constexpr std::uint64_t kPadding = 0xb5b5b5b5b5b5b5b5u;
inline constexpr std::size_t kPaddingMax = 32;

namespace padding {

template <class Word>
Word load(const std::byte* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <class Word>
void store(std::byte* to, Word word) noexcept {
  std::memcpy(to, &word, sizeof word);
}

using Two [[gnu::vector_size(16)]] = std::uint64_t;
inline constexpr Two kTwo = {kPadding, kPadding};

// Of a word whose last `bytes` bytes are padding, 0 to 7, the others.
inline std::uint64_t others(std::size_t bytes) noexcept { return ~std::uint64_t{0} >> (8 * bytes); }

}  // namespace padding

// Pads [begin, begin + bytes), up to kPaddingMax. The eight bytes in front of the end may be touched. By words that
// overlap: no loop has a length that nobody foresees.
inline void pad(std::byte* begin, std::size_t bytes) noexcept {
  using namespace padding;
  std::byte* const end = begin + bytes;
  if (bytes >= sizeof kTwo) {
    store(begin, kTwo);
    store(end - sizeof kTwo, kTwo);
  } else if (bytes >= sizeof kPadding) {
    store(begin, kPadding);
    store(end - sizeof kPadding, kPadding);
  } else {
    const std::uint64_t kept = others(bytes);
    store(end - sizeof kPadding, (load<std::uint64_t>(end - sizeof kPadding) & kept) | (kPadding & ~kept));
  }
}
inline bool is_padded(const std::byte* begin, std::size_t bytes) noexcept {
  using namespace padding;
  const std::byte* const end = begin + bytes;
  if (bytes >= sizeof kTwo) {
    const Two changed = (load<Two>(begin) ^ kTwo) | (load<Two>(end - sizeof kTwo) ^ kTwo);
    return (changed[0] | changed[1]) == 0;
  }
  if (bytes >= sizeof kPadding)
    return load<std::uint64_t>(begin) == kPadding && load<std::uint64_t>(end - sizeof kPadding) == kPadding;
  return ((load<std::uint64_t>(end - sizeof kPadding) ^ kPadding) & ~others(bytes)) == 0;
}

// An even number of words. No early end: nearly always all are zero.
inline bool is_zero(const std::uint64_t* words, std::size_t count) noexcept {
  using Four [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
  Four all{};
  for (; count >= 4; count -= 4, words += 4) all |= *reinterpret_cast<const Four*>(words);
  const std::uint64_t last = count == 0 ? 0 : words[0] | words[1];
  return (all[0] | all[1] | all[2] | all[3] | last) == 0;
}

}  // namespace loam::heap
