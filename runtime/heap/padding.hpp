// The bytes that a guarded heap knows: the padding behind a program's bytes, and the zeroes of what is freed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loam::heap {

inline constexpr std::uint64_t kPadding = 0xb5b5b5b5b5b5b5b5u;

// By words of eight bytes that may overlap, and by bytes where there are fewer than eight.
inline void pad(std::byte* begin, std::size_t bytes) noexcept {
  if (bytes < sizeof kPadding) {
    for (std::size_t i = 0; i < bytes; ++i) begin[i] = std::byte{kPadding & 0xff};
    return;
  }
  for (std::size_t i = 0; i + sizeof kPadding < bytes; i += sizeof kPadding)
    std::memcpy(begin + i, &kPadding, sizeof kPadding);
  std::memcpy(begin + bytes - sizeof kPadding, &kPadding, sizeof kPadding);
}
inline bool is_padded(const std::byte* begin, std::size_t bytes) noexcept {
  if (bytes < sizeof kPadding)
    return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{kPadding & 0xff}; });
  const auto word = [begin](std::size_t i) {
    std::uint64_t read;
    std::memcpy(&read, begin + i, sizeof read);
    return read;
  };
  std::uint64_t changed = word(bytes - sizeof kPadding) ^ kPadding;
  for (std::size_t i = 0; i + sizeof kPadding < bytes; i += sizeof kPadding) changed |= word(i) ^ kPadding;
  return changed == 0;
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
