// PageMap: what lies in each 64 KiB unit of the address space, one word a unit, flat.
//   Words: 0 nothing of ours; a slab's owner and class (slabs.hpp); or what is known of a large block (large.hpp).
//   The map covers all user addresses, 16 GiB of them reserved and backed where touched. Where the system refuses that
//   (RLIMIT_AS, strict overcommit) it covers the lowest 64 GiB in 8 MiB, or the lowest 8 GiB in 1 MiB where the limit is
//   below 1 GiB, and the heap's areas are put there.
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
  // Plain: it changes once, before the first block is handed out, and who frees a block got it by a path that orders.
  // (An atomic load is an instruction more in every free: GCC compares no atomic in memory.)
  static std::uintptr_t limit() noexcept { return units; }

  // unit < limit().
  // page_map.A: relaxed, by M1: who owns a block of the unit got it by a path that orders; a foreign pointer may read
  // any word.
  static Word at(std::uintptr_t unit) noexcept { return words[unit].load(std::memory_order_relaxed); }

  // Of unit 0; for who looks at many.
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
