// WaitingBlocks: blocks that a thread has freed and that a guarded heap keeps for a while, in the order in which they
// came. Of a thread: no other one is asked, and what is freed comes back to who has it in its cache.
//   How many wait is drawn anew every kPlaces blocks, kMin to kPlaces - 1, so that nobody foresees when one serves
//   again. They leave in the order in which they came: ADR 0017.
//   Q1 of the blocks that came since the queue was made, the last came_ - left_ wait, at most limit_ of them.
#pragma once

#include "runtime/heap/geometry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::heap {

class WaitingBlocks {
 public:
  static constexpr std::uint32_t kPlaces = 64, kMin = 32;
  static constexpr std::size_t kBytesMax = (std::size_t{1} << (64 - kAddressBits)) - 1;

  struct Block {
    std::uint64_t* words;
    std::size_t bytes;  // that the program asked for, at most kBytesMax
  };

  explicit WaitingBlocks(std::uint64_t seed) noexcept : limit_(kMin), drawn_(seed | 1) {}

  // release(block): for each that has to leave
  template <class Release>
  [[gnu::always_inline]] void put(Block block, Release release) noexcept {
    places_[came_++ % kPlaces] = address_of(block.words) | std::uint64_t{block.bytes} << kAddressBits;
    if (came_ % kPlaces == 0) [[unlikely]]
      return draw_limit(release);
    if (came_ - left_ > limit_) release(take());
  }

  template <class Release>
  void release_all(Release release) noexcept {
    while (left_ != came_) release(take());
  }

  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (std::uint32_t i = left_; i != came_; ++i) visit(at(i));
  }

  // Source: Marsaglia, Xorshift RNGs (2003).
  std::uint64_t draw() noexcept {
    drawn_ ^= drawn_ << 13;
    drawn_ ^= drawn_ >> 7;
    drawn_ ^= drawn_ << 17;
    return drawn_;
  }

 private:
  // Until as few wait as are to.
  template <class Release>
  [[gnu::cold, gnu::noinline]] void draw_limit(Release release) noexcept {
    limit_ = kMin + static_cast<std::uint32_t>(draw() % (kPlaces - kMin));
    while (came_ - left_ > limit_) release(take());
  }

  Block take() noexcept { return at(left_++); }
  Block at(std::uint32_t i) const noexcept {
    const std::uint64_t place = places_[i % kPlaces];
    return {reinterpret_cast<std::uint64_t*>(place & kAddressMask), place >> kAddressBits};
  }

  std::array<std::uint64_t, kPlaces> places_;  // addresses, and above each how long its block was
  std::uint32_t came_ = 0, left_ = 0, limit_;  // of all times; how many may wait
  std::uint64_t drawn_;                        // not 0
};

}  // namespace loam::heap
