// KeptMemory: how much memory of freed long blocks the heap keeps for the next long blocks. The same rule, with other
//   limits, is that of slabs (span_store.hpp).
//   Returning 1 MiB to the system and getting new pages for it takes 280 us. Keeping it costs memory, for ever if the
//   process is idle. So a freed long block is returned at once, unless recent long blocks would have used its memory.
//   Each long block that is taken after memory was returned raises the limit by its length, up to 64 MiB or the memory
//   that long blocks have in use. Each tick without a new long block halves the limit, and what counts as returned. So a
//   program that frees and allocates in turn pays only for its first blocks, and one that frees much and then is idle
//   keeps nothing.
//   Source: as the dynamic mmap threshold of glibc's malloc, which grows with freed blocks; but the limit here also
//   falls. Cost: a look at the clock for each long block.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/heap/page_source.hpp"

#include <algorithm>
#include <atomic>

namespace loam::heap {

// kTick: in ns
template <PageSource Pages, std::uint64_t kTick = 250'000'000>
class KeptMemory {
 public:
  static constexpr std::size_t kUnitsMax = (std::size_t{64} << 20) / kUnitBytes;
  static constexpr std::uint64_t kTickNs = kTick;

  // Whether note_taken() has anything to do.
  bool has_given() const noexcept {
    return (given_.load(std::memory_order_relaxed) | room_.load(std::memory_order_relaxed)) != 0;
  }

  // Called when so many units are taken; all that are in use are `used`.
  void note_taken(std::size_t units, std::size_t used) noexcept {
    // relaxed, here and below: two threads that note at once lose one note.
    if (!has_given()) return;
    const std::size_t room = room_now(), given = given_.load(std::memory_order_relaxed);
    const std::size_t missed = std::min(units, given);
    given_.store(given - missed, std::memory_order_relaxed);
    room_.store(std::min(room + missed, std::max(kUnitsMax, used)), std::memory_order_relaxed);
    ticked_ns_.store(Pages::now_ns(), std::memory_order_relaxed);
  }

  // Whether the memory of a freed block is kept, in addition to `dirty` units that are kept already. If not, the caller
  // returns it to the system.
  bool keeps(std::size_t units, std::size_t dirty) noexcept {
    if (units + dirty <= room_now()) return true;
    note_given(units);
    return false;
  }

  // So many units go back although they would have been kept, or without a question.
  void note_given(std::size_t units) noexcept {
    given_.store(given_.load(std::memory_order_relaxed) + units, std::memory_order_relaxed);
  }

  // Half of what it was for each tick since a block was taken; what went back is forgotten in the same time.
  std::size_t room_now() noexcept {
    const std::uint64_t now = Pages::now_ns(), ticks = (now - ticked_ns_.load(std::memory_order_relaxed)) / kTickNs;
    if (ticks != 0) {
      ticked_ns_.store(now, std::memory_order_relaxed);
      const auto halve = [ticks](std::atomic<std::size_t>& units) {
        units.store(units.load(std::memory_order_relaxed) >> std::min<std::uint64_t>(ticks, 63),
                    std::memory_order_relaxed);
      };
      halve(room_);
      halve(given_);
    }
    return room_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> room_{0};   // units that may stay
  std::atomic<std::size_t> given_{0};  // units that went back and that nobody has asked for since
  std::atomic<std::uint64_t> ticked_ns_{0};
};

}  // namespace loam::heap
