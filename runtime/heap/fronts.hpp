// Fronts: the bytes in front of each block of a hardened heap, by which a write before its start is found.
//   Four words at a block's front hold a mark, which is the block's address mixed with a secret. The first word of the
//   four holds in addition where the block's place in its slab begins: kBytes in front, or, for an aligned block, as
//   many bytes in front as its alignment.
//   The last word is written last and cleared first: a thread that finds it finds the rest of the block's frame as well.
//   Source: as the header of scudo's chunks.
//   F1 a block has its front exactly while the program holds it.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/platform/machine.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace loam::heap::fronts {

inline constexpr std::size_t kBytes = 32;

// mark: never 0.
inline void put(std::byte* block, std::uint64_t mark) noexcept {
  using namespace padding;
  store(block - 32, Two{mark, mark});
  store(block - 16, mark);
  platform::compiler_barrier();
  store(block - 8, mark);
}
// The same for an aligned block. distance: a power of two, more than kBytes
inline void put(std::byte* block, std::uint64_t mark, std::size_t distance) noexcept {
  put(block, mark);
  padding::store(block - 32, mark ^ static_cast<std::uint64_t>(std::countr_zero(distance)));
}

inline void clear(std::byte* block) noexcept {
  padding::store(block - 8, std::uint64_t{0});
  platform::compiler_barrier();
}

// Whether a block is held whose place begins kBytes in front of it.
inline bool is_there(const std::byte* block, std::uint64_t mark) noexcept {
  using namespace padding;
  const Two both{mark, mark};
  const Two changed = (load<Two>(block - 32) ^ both) | (load<Two>(block - 16) ^ both);
  return (changed[0] | changed[1]) == 0;
}

// How far in front of a block its place begins; 0: no block is held there, or its front has changed.
inline std::size_t distance(const std::byte* block, std::uint64_t mark) noexcept {
  using namespace padding;
  constexpr std::uint64_t kLeast = std::countr_zero(2 * kBytes), kMost = kUnitShift;
  if (is_there(block, mark)) return kBytes;
  const std::uint64_t shift = load<std::uint64_t>(block - 32) ^ mark;
  for (const int at : {24, 16, 8})
    if (load<std::uint64_t>(block - at) != mark) return 0;
  return shift >= kLeast && shift <= kMost ? std::size_t{1} << shift : 0;
}

}  // namespace loam::heap::fronts
