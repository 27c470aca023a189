// WaitingBlocks: the queue of blocks that a thread has freed and that a hardened heap keeps for a while. Each thread
// has its own queue, so no lock is needed, and a block serves the thread that has it in its cache.
//   Adding a block costs a store. When the queue is full, the oldest blocks leave together, in the order in which they
//   came (ADR 0017). The number that stays is random, kMin to kMax, so that it cannot be predicted when a block serves
//   again. Fewer long blocks wait: when they have more than kLongBytesMax together, the oldest ones leave until a
//   random part of that, a quarter to three quarters, stays. Many long blocks would push the program's data out of its
//   caches, and each new block would come from pages that are not backed yet.
//   Q1 the first count_ places hold the blocks that wait, the oldest first.
//   Q2 long_bytes_ is the sum of the bytes of the long blocks among them.
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
  static constexpr std::size_t kShortMax = 256, kLongBytesMax = std::size_t{64} << 10, kCountedMax = kLongBytesMax / 8;

  struct Block {
    std::uint64_t* words;
    std::size_t bytes;  // that the program asked for, at most kBytesMax
  };

  explicit WaitingBlocks(std::uint64_t seed) noexcept : drawn_(seed | 1) {}

  // Of at most kShortMax bytes. release(block): for each that has to leave. returns whether any had to; not this one
  template <class Release>
  [[gnu::always_inline]] bool put(Block block, Release release) noexcept {
    places_[count_++] = address_of(block.words) | std::uint64_t{block.bytes} << kAddressBits;
    if (count_ != kPlaces) [[likely]]
      return false;
    release_all_but(kMin + static_cast<std::uint32_t>(draw() % (kMax - kMin + 1)), release);
    return true;
  }

  // The same for a block that may be longer than kShortMax.
  template <class Release>
  void put_long(Block block, Release release) noexcept {
    long_bytes_ += long_bytes(block);
    put(block, release);
    if (long_bytes_ > kLongBytesMax) release_long(kLongBytesMax / 4 + draw() % (kLongBytesMax / 2), release);
  }

  template <class Release>
  void release_all(Release release) noexcept {
    release_all_but(0, release);
  }

  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) visit(at(i));
  }

  // nullptr, or the invariant that does not hold.
  const char* verify() const noexcept {
    return counted() == long_bytes_ ? nullptr : "Q2: what long blocks that wait count for is known";
  }

  // Source: Marsaglia, Xorshift RNGs (2003).
  std::uint64_t draw() noexcept {
    drawn_ ^= drawn_ << 13;
    drawn_ ^= drawn_ >> 7;
    drawn_ ^= drawn_ << 17;
    return drawn_;
  }

 private:
  // enough: bytes of long blocks that may stay
  template <class Release>
  [[gnu::noinline]] void release_long(std::size_t enough, Release release) noexcept {
    std::uint32_t staying = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Block block = at(i);
      if (const std::size_t bytes = long_bytes(block); bytes != 0 && long_bytes_ > enough) {
        release(block);
        long_bytes_ -= bytes;
      } else {
        places_[staying++] = places_[i];
      }
    }
    count_ = staying;
  }

  // count: of those that stay, at most as many as there are
  template <class Release>
  [[gnu::noinline]] void release_all_but(std::uint32_t count, Release release) noexcept {
    const std::uint32_t leaving = count_ - count;
    for (std::uint32_t i = 0; i < leaving; ++i) release(at(i));
    std::copy_n(places_.begin() + leaving, count, places_.begin());
    count_ = count;
    if (long_bytes_ != 0) long_bytes_ = counted();
  }

  // What a block counts for among the long ones. The longest count for less than they have, so that some wait of any.
  static std::size_t long_bytes(Block block) noexcept {
    return block.bytes > kShortMax ? std::min(block.bytes, kCountedMax) : 0;
  }

  std::size_t counted() const noexcept {
    std::size_t sum = 0;
    for_each([&sum](Block block) { sum += long_bytes(block); });
    return sum;
  }

  Block at(std::uint32_t i) const noexcept {
    return {reinterpret_cast<std::uint64_t*>(places_[i] & kAddressMask), places_[i] >> kAddressBits};
  }

  std::array<std::uint64_t, kPlaces> places_;  // addresses, and above each how long its block was
  std::uint32_t count_ = 0;
  std::size_t long_bytes_ = 0;
  std::uint64_t drawn_;  // not 0
};

}  // namespace loam::heap
