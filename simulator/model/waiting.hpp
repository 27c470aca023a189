// The waits of a core that are not for cache lines: translations of addresses, and its own writes.
#pragma once

#include "simulator/model/arena.hpp"
#include "simulator/model/machine.hpp"

#include <algorithm>
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
  }

  bool present() const noexcept { return sets_ != 0; }

  // Whether the page is the one of its set that was used last: to use it changes nothing.
  bool latest(std::uint64_t page) const noexcept { return latest_[page & (sets_ - 1)] == page + 1; }

  // Whether the page was there; it is afterwards.
  bool use(std::uint64_t page) noexcept {
    const std::uint64_t set = page & (sets_ - 1), first = set * ways_;
    if (latest_[set] == page + 1) return true;
    latest_[set] = page + 1;
    std::uint64_t chosen = first;
    for (std::uint64_t at = first; at < first + ways_; ++at) {
      if (pages_[at] == page + 1) {
        stamps_[at] = ++stamp_;
        return true;
      }
      if (stamps_[at] < stamps_[chosen]) chosen = at;
    }
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
};

// Writes that wait for their line, in order, while the core goes on.
class StoreBuffer {
 public:
  static constexpr std::uint32_t kEntriesMax = 64;

  // A write whose line takes `cycles`. returns how long the core waits for a free entry
  std::uint64_t put(std::uint64_t now, std::uint64_t cycles, std::uint32_t entries) noexcept {
    while (count_ != 0 && oldest() <= now) take();
    std::uint64_t wait = 0;
    if (count_ == entries) {
      wait = oldest() - now;
      take();
    }
    last_ = std::max(now + wait, last_) + cycles;
    done_[(first_ + count_) % kEntriesMax] = last_;
    ++count_;
    return wait;
  }

  // How long it takes until it is empty.
  std::uint64_t drain(std::uint64_t now) noexcept {
    count_ = 0;
    return last_ > now ? last_ - now : 0;
  }

 private:
  std::uint64_t oldest() const noexcept { return done_[first_]; }
  void take() noexcept {
    first_ = (first_ + 1) % kEntriesMax;
    --count_;
  }

  std::uint32_t first_ = 0, count_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t done_[kEntriesMax] = {};
};

}  // namespace loam::simulator
