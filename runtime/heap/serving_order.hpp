// Which of its free short blocks a heap hands out next; a composition says so.
//   latest_first  those that were freed last, which are in the nearest cache. Some lists of them stay on the shelf,
//                 while they lie near each other (ADR 0021).
//   by_address    lists go to their slabs when they are full, and what a slab has to give is handed out in the order of
//                 addresses. For a heap whose blocks come back late (guarded.hpp): with latest_first a block that a
//                 program frees early, as a table does that grows, leaves a gap among its neighbours which some other
//                 structure fills, and nothing brings order back (ADR 0017).
//   What came back to a slab of by_address is a set of bits beside the area, not a list: a list of blocks that left the
//   cache long ago is a chain of misses to walk, and to sort.
//   Cost of by_address: a bit for each block, and 64 words to look through for each list; not where blocks serve again
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
