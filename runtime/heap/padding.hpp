// The bytes that a guarded heap knows: the padding behind a program's bytes, and the zeroes of what is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

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

// Bytes that zero() clears without a call.
inline constexpr std::size_t kZeroedMax = 256;

// 16 to kZeroedMax bytes, a multiple of 16. In words of 16 bytes: with longer ones compilers set up a frame on the
// stack.
inline void zero(std::byte* begin, std::size_t bytes) noexcept {
  using namespace padding;
  std::byte* const end = begin + bytes;
  const auto from_both_ends = [begin, end](std::initializer_list<std::ptrdiff_t> offsets) {
    for (const std::ptrdiff_t offset : offsets) {
      store(begin + offset, Two{});
      store(end - 16 - offset, Two{});
    }
  };
  from_both_ends({0});
  if (bytes <= 32) return;
  from_both_ends({16});
  if (bytes <= 64) return;
  from_both_ends({32, 48});
  if (bytes <= 128) return;
  from_both_ends({64, 80, 96, 112});
}

// An even number of words. No early end: nearly always all are zero.
inline bool is_zero(const std::uint64_t* words, std::size_t count) noexcept {
  using namespace padding;
  if (count == 0) return true;
  const auto* const begin = reinterpret_cast<const std::byte*>(words);
  const std::byte* const last = begin + count * sizeof *words - sizeof(Two);
  Two all = load<Two>(last);
  for (const std::byte* at = begin; at < last; at += 2 * sizeof(Two))
    all |= load<Two>(at) | load<Two>(at + sizeof(Two));
  return (all[0] | all[1]) == 0;
}

}  // namespace loam::heap
