// Seals: what stands at the end of a guarded block while the program holds it: its length, and address, length and a
// secret mixed into one number. No other place has the seal of a block that begins there: by chance one in 2^47 does.
//   bits 0 to 16 are the length's, in plain, so that one byte more of any other value than its own breaks a seal; bits
//   17 to 63 the address and the secret, and from bit 47 on the length once more. Of longer blocks the length goes on
//   above bit 16, mixed with the rest.
//   Source: the checksums of scudo's chunk headers.
//   Cost: eight instructions to make, some more to open; no multiplication, whose result free would wait for.
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
  // Before the calling thread makes a seal. Who opens one got the block by means that order.
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

  // The length that is sealed; kBroken where it is not the block's seal.
  std::size_t opened(std::uint64_t seal, const void* block) const noexcept {
    const std::uint64_t plain = seal ^ mixed(block), length = plain & kLengthMask;
    return plain == twice(length) ? length : kBroken;
  }

  static constexpr std::size_t kBroken = ~std::size_t{0};  // more bytes than any block has

 private:
  static constexpr unsigned kLengthBits = 47, kPlainBits = 64 - kLengthBits;
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << kLengthBits) - 1;
  static_assert(kAddressBits + kPlainBits <= 64, "an address fits above the plain bits");

  static std::uint64_t twice(std::uint64_t length) noexcept { return length | length << kLengthBits; }
  std::uint64_t mixed(const void* block) const noexcept { return address_of(block) << kPlainBits ^ secret(); }

  std::atomic<std::uint64_t> secret_{0};
};

}  // namespace loam::heap
