// Size classes: which block serves a request.
//   16 to 128 by 16, then four per doubling to 32 KiB: 40 classes, at most 1/5 of a block unused above 64 bytes.
//   From 1024 bytes on each class is one cache line longer than its round number, so that its stride is an odd number
//   of lines: blocks of a power of two would fall on few cache sets (twelve of 4 KiB fill one set of the first level).
//   Behind them nine natural classes, powers of two from 64 to 16384 whose blocks are aligned to their size: for
//   aligned_alloc and the like, never for plain requests.
#pragma once

#include "runtime/heap/geometry.hpp"

#include <array>
#include <bit>
#include <concepts>
#include <type_traits>

namespace loam::heap {

// The interface of size classes for a heap. All constexpr; n in bytes.
template <class C>
concept SizeClasses = requires(std::size_t n, unsigned c) {
  { C::kClasses } -> std::convertible_to<unsigned>;
  { C::kSmallMax } -> std::convertible_to<std::size_t>;  // up to here small_slots() decides
  { C::kMax } -> std::convertible_to<std::size_t>;       // the longest block that comes from a slab
  { C::class_of(n) } -> std::same_as<unsigned>;          // n <= kMax
  { C::class_aligned(n, n) } -> std::same_as<unsigned>;  // alignment, n; kClasses: none
  { C::bytes_of(c) } -> std::same_as<std::size_t>;
  { C::units_of(c) } -> std::same_as<unsigned>;
  { C::is_natural(c) } -> std::same_as<bool>;
};

// From this size on blocks are long: a slab has few of them, and their lists are short.
inline constexpr std::size_t kLongBytes = 2048;
// Blocks below that are short: many lie in a page, and a slab of them is one unit.
inline constexpr std::size_t kShortBytesEnd = 1024;
constexpr bool is_short(std::size_t block_bytes) noexcept { return block_bytes < kShortBytesEnd; }

struct FourPerDoubling {
  static constexpr unsigned kPlain = 40, kNatural = 9;
  static constexpr unsigned kClasses = kPlain + kNatural;
  static constexpr std::size_t kSmallMax = 1024;
  static constexpr std::size_t kSlot = 16;
  static constexpr std::size_t kMax = (32u << 10) + platform::kCacheLineBytes;

  static constexpr std::size_t bytes_of(unsigned c) noexcept { return kBytes[c]; }

  // Units of a slab. It has at least seven blocks, so that little is lost at its end. Slabs of blocks of 4160 bytes
  // have two units: in slabs of one unit the blocks would begin in less than half of the first-level cache's sets, and
  // a hardware transaction could write 150 of them instead of 250.
  static constexpr unsigned units_of(unsigned c) noexcept {
    const std::size_t bytes = kBytes[c];
    return bytes < 4160 ? 1 : bytes <= 8256 ? 2 : bytes <= 16448 ? 4 : 8;
  }

  static constexpr bool is_natural(unsigned c) noexcept { return c >= kPlain; }

  static constexpr unsigned class_of(std::size_t n) noexcept {
    return n <= kSmallMax ? kOfSlots[(n + kSlot - 1) / kSlot] : kOfLines[(n + kLine - 1) / kLine];
  }

  // The classes of requests of at most kSmallMax bytes by their number of 16-byte slots, for a thread heap to copy.
  static constexpr auto& small_slots() noexcept { return kOfSlots; }

  static constexpr unsigned class_aligned(std::size_t alignment, std::size_t n) noexcept {
    if (n <= kMax && alignment <= kLine)
      for (unsigned c = class_of(n); c < kPlain; ++c)
        if (kBytes[c] % alignment == 0) return c;
    const std::size_t natural = std::bit_ceil(n > alignment ? n : alignment);
    if (natural > kBytes[kClasses - 1]) return kClasses;
    return kPlain + (natural <= 64 ? 0 : static_cast<unsigned>(std::countr_zero(natural)) - 6);
  }

 private:
  static constexpr std::size_t kLine = platform::kCacheLineBytes;

  static constexpr std::array<std::uint32_t, kClasses> kBytes = [] {
    std::array<std::uint32_t, kClasses> bytes{};
    unsigned c = 0;
    for (std::uint32_t n = 16; n <= 128; n += 16) bytes[c++] = n;
    for (std::uint32_t base = 128; base < 32u << 10; base *= 2)
      for (std::uint32_t n = base + base / 4; n <= 2 * base; n += base / 4) bytes[c++] = n < 1024 ? n : n + kLine;
    for (std::uint32_t n = 64; c < kClasses; n *= 2) bytes[c++] = n;
    return bytes;
  }();

  // The classes of requests of at most 0, 1, 2 ... steps; exact, because all classes end on a step.
  static constexpr auto by_steps = []<std::size_t kSteps>(std::integral_constant<std::size_t, kSteps>,
                                                          std::size_t step) {
    std::array<std::uint8_t, kSteps + 1> found{};
    unsigned c = 0;
    for (std::size_t i = 0; i <= kSteps; ++i) {
      while (kBytes[c] < i * step) ++c;
      found[i] = static_cast<std::uint8_t>(c);
    }
    return found;
  };
  static constexpr auto kOfSlots = by_steps(std::integral_constant<std::size_t, kSmallMax / kSlot>{}, kSlot);
  static constexpr auto kOfLines = by_steps(std::integral_constant<std::size_t, kMax / kLine>{}, kLine);
};
static_assert(SizeClasses<FourPerDoubling>);

}  // namespace loam::heap
