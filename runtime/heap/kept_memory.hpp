// KeptMemory: how much free memory long blocks leave behind for the next ones.
//   To give back 1 MiB and to get new pages for it takes 280 us. To keep it costs memory that an idle process has for
//   ever. So what is freed goes back at once, unless long blocks that were taken lately would have used it. Each one that
//   is taken after another's memory went back lets so much more stay, up to 64 MiB or as much as long blocks have. With
//   every tick in which no long block is taken half as much may stay. A program that frees and allocates in turn pays for
//   its first blocks; one that frees much and then rests keeps nothing.
//   Source as the dynamic threshold of glibc's malloc for mappings, which grows with what is freed, but with a way back.
//   Cost: a look at the clock for each long block.
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

  // A long block of so many units is taken; all of them have `used` units.
  void note_taken(std::size_t units, std::size_t used) noexcept {
    // relaxed, here and below: two threads that note at once lose one note.
    const std::size_t given = given_.load(std::memory_order_relaxed);
    if (given == 0 && room_.load(std::memory_order_relaxed) == 0) return;
    const std::size_t missed = std::min(units, given), room = room_now();
    given_.store(given - missed, std::memory_order_relaxed);
    room_.store(std::min(room + missed, std::max(kUnitsMax, used)), std::memory_order_relaxed);
    ticked_ns_.store(Pages::now_ns(), std::memory_order_relaxed);
  }

  // Whether the memory of a block that is freed stays, beside `dirty` units that are free already. If not, it is to be
  // given back.
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
