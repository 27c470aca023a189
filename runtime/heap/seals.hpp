// Seals: a seal is the last word of a hardened block while the program holds it: a number that is made of its length,
// its address and a secret. Another address has a valid seal by chance with a probability of 1 in 2^47.
//   Bits 0 to 16 are the length as it is, so a write of one byte past the end breaks the seal, unless it writes the
//   same value. Bits 17 to 63 are the address and the secret, mixed from bit 47 on with the length. The length of a
//   longer block continues above bit 16, mixed with the rest.
//   Source: the checksums of scudo's chunk headers.
//   Cost: eight instructions to make, some more to open. There is no multiplication, because free would wait for it.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::heap {

class Seals {
 public:
  // Call it before the calling thread makes a seal. A thread that opens a seal has received the block by a path with
  // the right order.
  void draw_secret_once() noexcept {
    if (secret() != 0) return;
    std::uint64_t none = 0, drawn = 0;
    platform::random_bytes(std::as_writable_bytes(std::span(&drawn, 1)));
    // relaxed: of those who draw at the same time the first exchange decides, and each of them reads what it stored.
    secret_.compare_exchange_strong(none, drawn << kPlainBits | std::uint64_t{1} << kPlainBits,
                                    std::memory_order_relaxed);
  }

  std::uint64_t secret() const noexcept { return secret_.load(std::memory_order_relaxed); }

  std::uint64_t of(const void* block, std::size_t bytes) const noexcept { return twice(bytes) ^ mixed(block); }

  // The length in the seal; kBroken if the word is not the block's seal.
  std::size_t opened(std::uint64_t seal, const void* block) const noexcept {
    const std::uint64_t plain = seal ^ mixed(block), length = plain & kLengthMask;
    return plain == twice(length) ? length : kBroken;
  }

  // What stands in front of the block: never 0, and not what a seal can be.
  std::uint64_t mark_of(const void* block) const noexcept { return ~mixed(block); }

  static constexpr std::size_t kBroken = ~std::size_t{0};  // more bytes than any block has

 private:
  static constexpr unsigned kLengthBits = 47, kPlainBits = 64 - kLengthBits;
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << kLengthBits) - 1;
  // An address fits above the plain bits, but for those of its lowest bits that are 0 in every block.
  static constexpr unsigned kAddressShift = std::min(kPlainBits, 64 - kAddressBits);
  static_assert(std::size_t{1} << (kPlainBits - kAddressShift) <= kBlockAlignment);

  static std::uint64_t twice(std::uint64_t length) noexcept { return length | length << kLengthBits; }
  std::uint64_t mixed(const void* block) const noexcept { return address_of(block) << kAddressShift ^ secret(); }

  std::atomic<std::uint64_t> secret_{0};
};

}  // namespace loam::heap
