// KeptMemory: how much memory of freed long blocks the heap keeps for the next long blocks.
//   Returning 1 MiB to the system and getting new pages for it takes 280 us. Keeping it costs memory, for ever if the
//   process is idle. So a freed long block is returned at once, unless recent long blocks would have used its memory.
//   Each long block that is taken after memory was returned raises the limit by its length, up to 64 MiB or the memory
//   that long blocks have in use. Each tick without a new long block halves the limit. So a program that frees and
//   allocates in turn pays only for its first blocks, and one that frees much and then is idle keeps nothing.
//   Source: as the dynamic mmap threshold of glibc's malloc, which grows with freed blocks; but the limit here also
//   falls. Cost: a look at the clock for each long block.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/heap/page_source.hpp"

#include <algorithm>
#include <atomic>

namespace loam::heap {

template <PageSource Pages>
class KeptMemory {
 public:
  static constexpr std::size_t kUnitsMax = (std::size_t{64} << 20) / kUnitBytes;
  static constexpr std::uint64_t kTickNs = 250'000'000;

  // Called when a long block of so many units is taken; all long blocks have `used` units.
  void note_taken(std::size_t units, std::size_t used) noexcept {
    // relaxed, here and below: two threads that note at once lose one note.
    const std::size_t given = given_.load(std::memory_order_relaxed);
    if (given == 0 && room_.load(std::memory_order_relaxed) == 0) return;
    const std::size_t missed = std::min(units, given), room = room_now();
    given_.store(given - missed, std::memory_order_relaxed);
    room_.store(std::min(room + missed, std::max(kUnitsMax, used)), std::memory_order_relaxed);
    ticked_ns_.store(Pages::now_ns(), std::memory_order_relaxed);
  }

  // Whether the memory of a freed block is kept, in addition to `dirty` units that are kept already. If not, the caller
  // returns it to the system.
  bool keeps(std::size_t units, std::size_t dirty) noexcept {
    if (units + dirty <= room_now()) return true;
    given_.store(given_.load(std::memory_order_relaxed) + units, std::memory_order_relaxed);
    return false;
  }

 private:
  // Half of what it was for each tick since a block was taken.
  std::size_t room_now() noexcept {
    const std::uint64_t now = Pages::now_ns(), ticks = (now - ticked_ns_.load(std::memory_order_relaxed)) / kTickNs;
    if (ticks != 0) {
      ticked_ns_.store(now, std::memory_order_relaxed);
      const std::size_t room = room_.load(std::memory_order_relaxed);
      room_.store(room >> std::min<std::uint64_t>(ticks, 63), std::memory_order_relaxed);
    }
    return room_.load(std::memory_order_relaxed);
  }

  std::atomic<std::size_t> room_{0};   // units that may stay
  std::atomic<std::size_t> given_{0};  // units that went back and that nobody has asked for since
  std::atomic<std::uint64_t> ticked_ns_{0};
};

}  // namespace loam::heap
