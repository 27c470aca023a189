// The translations of addresses that a core has at hand.
#pragma once

#include "simulator/model/arena.hpp"
#include "simulator/model/machine.hpp"

#include <cstdint>

namespace loam::simulator {

// One level of a translation buffer: sets of pages, the one that was not used for longest leaves.
class Tlb {
 public:
  void init(Arena& arena, const TlbShape& shape) noexcept {
    ways_ = shape.ways;
    sets_ = shape.entries / shape.ways;
    if (sets_ == 0) return;
    pages_ = arena.zeros<std::uint64_t>(shape.entries);
    latest_ = arena.zeros<std::uint64_t>(sets_);
    stamps_ = arena.zeros<std::uint64_t>(shape.entries);
    places_ = arena.zeros<std::uint8_t>(kPlaces);
  }

  bool present() const noexcept { return sets_ != 0; }

  // Whether the page is the one of its set that was used last: to use it changes nothing.
  bool latest(std::uint64_t page) const noexcept { return latest_[page & (sets_ - 1)] == page + 1; }

  // Whether the page was there; it is afterwards.
  bool use(std::uint64_t page) noexcept {
    const std::uint64_t set = page & (sets_ - 1), first = set * ways_;
    if (latest_[set] == page + 1) return true;
    latest_[set] = page + 1;
    std::uint8_t& place = places_[page % kPlaces];
    std::uint64_t at = first + place, chosen = first;
    if (place >= ways_ || pages_[at] != page + 1)
      for (at = first; at < first + ways_ && pages_[at] != page + 1; ++at)
        if (stamps_[at] < stamps_[chosen]) chosen = at;
    if (at < first + ways_) {
      place = static_cast<std::uint8_t>(at - first);
      stamps_[at] = ++stamp_;
      return true;
    }
    place = static_cast<std::uint8_t>(chosen - first);
    pages_[chosen] = page + 1;
    stamps_[chosen] = ++stamp_;
    return false;
  }

 private:
  std::uint64_t sets_ = 0, ways_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t* pages_ = nullptr;   // page + 1; 0: none
  std::uint64_t* latest_ = nullptr;  // of each set, as in pages_
  std::uint64_t* stamps_ = nullptr;
  // The way that a page with this hash was found in last: tried before the others. Any value is right.
  static constexpr std::uint64_t kPlaces = 128;
  std::uint8_t* places_ = nullptr;
};

}  // namespace loam::simulator
