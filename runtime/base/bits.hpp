// Small integer arithmetic that <bit> lacks.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace loam::base {

// Smallest multiple of `unit` (a power of two) that is at least `value`.
template <std::unsigned_integral Word>
constexpr Word round_up(Word value, Word unit) noexcept {
  return (value + unit - 1) & ~(unit - 1);
}

template <std::unsigned_integral Word>
constexpr bool is_multiple_of(Word value, Word unit) noexcept {
  return (value & (unit - 1)) == 0;
}

// Maps a uniform 32-bit word to [0, count) by one multiplication; biased by less than count / 2^32.
constexpr std::uint32_t scale_to(std::uint32_t uniform, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{uniform} * count) >> 32);
}

// A bijection of 64-bit words in which every input bit reaches every output bit: turns counters into seeds.
//   Source: Stafford's variant 13 of the MurmurHash3 finaliser, as used by SplitMix64 (Steele, Lea, Flood, OOPSLA
//   2014).
constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

}  // namespace loam::base
