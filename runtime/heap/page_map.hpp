// PageMap: a flat array with one word for each 64 KiB unit of the address space: what lies there.
//   Words: 0: no block of the heap; a slab's owner and class (slabs.hpp); or the metadata of a large block (large.hpp).
//   The map covers all user addresses: 16 GiB of reserved addresses (on AArch64 32 GiB), backed when touched. If the
//   system refuses that (RLIMIT_AS, strict overcommit), it covers the lowest 64 GiB in 8 MiB, or, if the limit is below
//   1 GiB, the lowest 8 GiB in 1 MiB. The heap's areas are then placed there.
//   Source flat map as in snmalloc 2.   Cost: a lookup is two loads and the comparison with limit().
//   M1 a word changes only while no block of its unit is in a user's hands.
#pragma once

#include "runtime/heap/geometry.hpp"

#include <atomic>

namespace loam::heap {

class PageMap {
 public:
  using Word = std::uintptr_t;

  // Reserves the map. Call under the spans' lock, once. returns false where even the small one is refused
  static bool open() noexcept;

  static bool is_open() noexcept { return limit() != 0; }

  // Units from here on are not covered; 0 before open().
  // Plain: it changes once, before the first block is handed out, and a thread that frees a block has received it by a
  // path with the right order. (An atomic load would cost an instruction in every free: GCC does not compare an atomic
  // in memory.)
  static std::uintptr_t limit() noexcept { return units; }

  // unit < limit().
  // page_map.A: relaxed, by M1: a thread that has a block of the unit received it by a path with the right order. For a
  // foreign pointer any word is acceptable.
  static Word at(std::uintptr_t unit) noexcept { return words[unit].load(std::memory_order_relaxed); }

  // The word of unit 0, for callers that read many words.
  static const std::atomic<Word>* begin() noexcept { return words; }

  // Sets the words of `count` units.
  static void set(std::uintptr_t unit, std::size_t count, Word word) noexcept {
    for (std::size_t i = 0; i < count; ++i) words[unit + i].store(word, std::memory_order_relaxed);  // page_map.A
  }

 private:
  static inline constinit std::atomic<Word>* words = nullptr;
  static inline constinit std::uintptr_t units = 0;
};

}  // namespace loam::heap
