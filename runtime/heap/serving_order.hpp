// The order in which a heap hands out its free short blocks; a composition chooses it.
//   latest_first  the block that was freed last, which is in the nearest cache. Some lists stay on the shelf while
//                 their blocks lie near each other (ADR 0021).
//   by_address    full lists return to their slabs, and a slab hands out its blocks in the order of addresses. For a
//                 heap whose blocks return late (guarded.hpp). With latest_first, a block that a program frees early,
//                 as a growing table does, would leave a gap among its neighbours. Another structure would fill the
//                 gap, and the blocks would never be in order again (ADR 0017).
//   A slab of by_address has a set of bits for its free blocks, not a list: blocks that left the cache long ago would
//   cost a chain of misses to walk and to sort.
//   Cost of by_address: a bit for each block, and 64 words to search for each list.   When not: blocks that serve again
//   at once.
#pragma once

#include "runtime/heap/free_block.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/unit_bits.hpp"

#include <cstdint>

namespace loam::heap {

enum class ServingOrder : std::uint8_t { latest_first, by_address };

// Places of 16 bytes in one unit.
using UnitPlaces = UnitBits<kUnitBytes / kBlockAlignment>;

inline unsigned place_of(const void* block) noexcept {
  return static_cast<unsigned>(address_of(block) % kUnitBytes / kBlockAlignment);
}

// The blocks of a unit, `count` of them, that begin at these places: a list, the lowest first. Clears the places.
[[gnu::noinline]] inline BlockList take_in_order(UnitPlaces& places, std::uintptr_t unit, std::uint32_t count,
                                                 Key key) noexcept {
  BlockList list{nullptr, count};
  FreeBlock* last = nullptr;
  places.take_all([&](unsigned place) {
    auto* const block = reinterpret_cast<FreeBlock*>((unit << kUnitShift) + place * kBlockAlignment);
    if (last != nullptr)
      link_to(last, block, key);
    else
      list.first = block;
    last = block;
  });
  if (last != nullptr) link_to(last, nullptr, key);
  return list;
}

}  // namespace loam::heap
