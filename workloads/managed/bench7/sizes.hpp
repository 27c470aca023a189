// How large STMBench7 is, and the bounds of its numbers.
#pragma once

#include "workloads/managed/bench7/objects.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::workloads::managed::bench7 {

inline constexpr unsigned kFanOut = 3;  // children of an assembly: assemblies, or composite parts
inline constexpr unsigned kConnections = 6;
inline constexpr unsigned kTypes = 10;
inline constexpr Number kDateLeast = 1000, kDateMost = 1999;                    // of modules, assemblies, atomic parts
inline constexpr Number kYoungLeast = 2000, kYoungMost = 2999, kOldMost = 999;  // of composite parts
inline constexpr std::uint32_t kYoungPercent = 10;
inline constexpr std::uint32_t kPlaces = 100000;   // x is below; y = x + 1
inline constexpr std::uint32_t kLengths = 100000;  // of connections: 1 to this

struct Sizes {
  std::uint32_t composite_parts, atomic_parts;  // in the library; in each of them
  Number levels;                                // of assemblies
  std::uint32_t document_chars, manual_chars;

  std::uint32_t bases() const noexcept { return power(levels - 1); }
  std::uint32_t complexes() const noexcept { return (power(levels - 1) - 1) / (kFanOut - 1); }
  std::uint32_t atomics() const noexcept { return composite_parts * atomic_parts; }
  // Of a kind of identifiers: a twentieth more than there are objects at the beginning.
  static constexpr std::uint32_t pool_of(std::uint32_t objects) noexcept { return objects + objects / 20; }
  static constexpr std::uint32_t power(Number exponent) noexcept {
    return exponent == 0 ? 1 : kFanOut * power(exponent - 1);
  }
};

inline constexpr std::string_view kSizeNames[] = {"medium", "big", "small", "tiny"};
// big is OO7's "medium" and the size of the published measurements; tiny is for tests.
inline constexpr Sizes kSizes[] = {
    {500, 20, 7, 20000, 1000000}, {500, 200, 7, 20000, 1000000}, {50, 20, 7, 20000, 1000000}, {20, 20, 4, 500, 5000}};
static_assert(std::size(kSizeNames) == std::size(kSizes));

inline Sizes sizes_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kSizes); ++i)
    if (kSizeNames[i] == name) return kSizes[i];
  return kSizes[0];
}

}  // namespace loam::workloads::managed::bench7
