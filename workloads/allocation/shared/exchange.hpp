// Where threads leave what they hold for what another has left, so that blocks are freed by another thread than the one
// that allocated them.
//   All threads go through the same places in the same order and begin far from each other, so often another has been
//   at a place before: about half of the times where two threads run at the same time, seldom where they take turns on
//   a processor. A single thread finds its own of some time ago.
#pragma once

#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::workloads::allocation {

template <class Thing>
class Exchange {
 public:
  static constexpr std::size_t kPlaces = 64;

  // Before the threads begin: what the first ones to come find.
  void open(std::span<Thing, kPlaces> things) noexcept {
    for (std::size_t i = 0; i < kPlaces; ++i) leave(i, &things[i]);
  }

  // Where a thread begins; it counts on from here.
  static constexpr std::uint64_t first_turn(unsigned thread) noexcept { return thread * (kPlaces / 2 + 1); }

  // Leaves a thing for the one that is there.
  Thing* leave(std::uint64_t turn, Thing* thing) noexcept {
    // exchange.X: release publishes the thing, and what it refers to, to the thread whose acquire takes it over.
    return places_[turn % kPlaces].thing.exchange(thing, std::memory_order_acq_rel);
  }

 private:
  struct alignas(platform::kApartBytes) Place {
    std::atomic<Thing*> thing{nullptr};
  };
  Place places_[kPlaces];
};

}  // namespace loam::workloads::allocation
