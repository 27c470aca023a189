// The bytes with known values in a hardened heap: the padding behind a program's bytes, and the zeroes of freed blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace loam::heap {

inline constexpr std::uint64_t kPadding = 0xb5b5b5b5b5b5b5b5u;
inline constexpr std::size_t kPaddingMax = 32;

namespace padding {

template <class Word>
[[gnu::always_inline]] inline Word load(const std::byte* from) noexcept {
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
[[gnu::always_inline]] inline std::uint64_t others(std::size_t bytes) noexcept {
  return ~std::uint64_t{0} >> (8 * bytes);
}

}  // namespace padding

// Pads [begin, begin + room), at most kPaddingMax bytes of it. May zero the last eight bytes in front of it. It writes
// words that overlap, and uses no loop of variable length.
inline void pad_new(std::byte* begin, std::size_t room) noexcept {
  using namespace padding;
  if (room < sizeof kPadding) return store(begin + room - sizeof kPadding, kPadding & ~others(room));
  if (room < sizeof kTwo) {
    store(begin, kPadding);
    return store(begin + room - sizeof kPadding, kPadding);
  }
  store(begin, kTwo);
  store(begin + std::min(room, kPaddingMax) - sizeof kTwo, kTwo);
}
// The same, and what lies in front of it stays.
inline void pad(std::byte* begin, std::size_t room) noexcept {
  using namespace padding;
  if (room >= sizeof kPadding) return pad_new(begin, room);
  std::byte* const last = begin + room - sizeof kPadding;
  const std::uint64_t kept = others(room);
  store(last, (load<std::uint64_t>(last) & kept) | (kPadding & ~kept));
}
// Whether [begin, begin + room), or as much of it as kPaddingMax, is padding. Eight bytes lie in front of it.
[[gnu::always_inline]] inline bool is_padded(const std::byte* begin, std::size_t room) noexcept {
  using namespace padding;
  if (room < sizeof kTwo) {
    const std::uint64_t last = load<std::uint64_t>(begin + room - sizeof kPadding);
    if (room < sizeof kPadding) return ((last ^ kPadding) & ~others(room)) == 0;
    return load<std::uint64_t>(begin) == kPadding && last == kPadding;
  }
  const std::byte* const end = begin + std::min(room, kPaddingMax);
  const Two changed = (load<Two>(begin) ^ kTwo) | (load<Two>(end - sizeof kTwo) ^ kTwo);
  return (changed[0] | changed[1]) == 0;
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

// An even number of words, not none. No early end: nearly always all are zero.
inline bool is_zero(const std::uint64_t* words, std::size_t count) noexcept {
  using namespace padding;
  const auto* const begin = reinterpret_cast<const std::byte*>(words);
  const std::byte* const last = begin + count * sizeof *words - sizeof(Two);
  Two all = load<Two>(begin) | load<Two>(last);
  for (const std::byte* at = begin + sizeof(Two); at < last; at += 2 * sizeof(Two))
    all |= load<Two>(at) | load<Two>(at + sizeof(Two));
  return (all[0] | all[1]) == 0;
}

}  // namespace loam::heap
