// Seals: what stands at the end of a guarded block, its length and a tag that address, length and a secret make.
//   Source: the checksums of scudo's chunk headers.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::heap {

class Seals {
 public:
  // Before any other call, and such that the others see it.
  void draw_secret() noexcept {
    std::uint64_t none = 0, drawn = 0;
    platform::random_bytes(std::as_writable_bytes(std::span(&drawn, 1)));
    // relaxed: of those who draw at the same time the first exchange decides; what orders it is the caller's.
    secret_.compare_exchange_strong(none, drawn | 1, std::memory_order_relaxed);
  }

  std::uint64_t secret() const noexcept { return secret_.load(std::memory_order_relaxed); }

  std::uint64_t of(const void* block, std::size_t bytes) const noexcept {
    const std::uint64_t tag = (address_of(block) ^ secret() ^ std::uint64_t{bytes} << 3) * kSpread;
    return (tag & ~kLengthMask) | bytes;
  }

  // Whether it is the block's seal, for some length.
  bool is_seal(std::uint64_t seal, const void* block) const noexcept { return seal == of(block, length_of(seal)); }

  static std::size_t length_of(std::uint64_t seal) noexcept { return seal & kLengthMask; }

 private:
  // The tag has the rest: the bits of a product that depend on most of what is multiplied.
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio

  std::atomic<std::uint64_t> secret_{0};
};

}  // namespace loam::heap
