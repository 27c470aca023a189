// WaitingBlocks: blocks that a thread has freed and that a guarded heap keeps for a while, in the order in which they
// came. Of a thread: no other one is asked, and what is freed comes back to who has it in its cache.
//   To put one in costs a store; when the places are taken, the oldest blocks leave together, in the order in which
//   they came (ADR 0017). How many stay is drawn, kMin to kMax, so that nobody foresees when a block serves again.
//   Q1 the first count_ places hold the blocks that wait, the oldest first.
#pragma once

#include "runtime/heap/geometry.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::heap {

class WaitingBlocks {
 public:
  static constexpr std::uint32_t kPlaces = 96, kMin = 32, kMax = 63;
  static constexpr std::size_t kBytesMax = (std::size_t{1} << (64 - kAddressBits)) - 1;

  struct Block {
    std::uint64_t* words;
    std::size_t bytes;  // that the program asked for, at most kBytesMax
  };

  explicit WaitingBlocks(std::uint64_t seed) noexcept : drawn_(seed | 1) {}

  // release(block): for each that has to leave
  template <class Release>
  [[gnu::always_inline]] void put(Block block, Release release) noexcept {
    places_[count_++] = address_of(block.words) | std::uint64_t{block.bytes} << kAddressBits;
    if (count_ == kPlaces) [[unlikely]]
      release_all_but(kMin + static_cast<std::uint32_t>(draw() % (kMax - kMin + 1)), release);
  }

  template <class Release>
  void release_all(Release release) noexcept {
    release_all_but(0, release);
  }

  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) visit(at(i));
  }

  // Source: Marsaglia, Xorshift RNGs (2003).
  std::uint64_t draw() noexcept {
    drawn_ ^= drawn_ << 13;
    drawn_ ^= drawn_ >> 7;
    drawn_ ^= drawn_ << 17;
    return drawn_;
  }

 private:
  // count: of those that stay, at most as many as there are
  template <class Release>
  [[gnu::noinline]] void release_all_but(std::uint32_t count, Release release) noexcept {
    const std::uint32_t leaving = count_ - count;
    for (std::uint32_t i = 0; i < leaving; ++i) release(at(i));
    std::copy_n(places_.begin() + leaving, count, places_.begin());
    count_ = count;
  }

  Block at(std::uint32_t i) const noexcept {
    return {reinterpret_cast<std::uint64_t*>(places_[i] & kAddressMask), places_[i] >> kAddressBits};
  }

  std::array<std::uint64_t, kPlaces> places_;  // addresses, and above each how long its block was
  std::uint32_t count_ = 0;
  std::uint64_t drawn_;  // not 0
};

}  // namespace loam::heap
