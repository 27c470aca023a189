// The units in which the heap cuts memory.
//   unit   64 KiB: the page map has one word for each; a span is one or more units
//   area   256 MiB of addresses at a multiple of 256 MiB, from which spans are taken
//   line   64 bytes, a cache line: the unit of colours
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/pages.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::heap {

inline constexpr unsigned kUnitShift = 16;
inline constexpr std::size_t kUnitBytes = std::size_t{1} << kUnitShift;

inline constexpr unsigned kAreaShift = 28;
inline constexpr std::size_t kAreaBytes = std::size_t{1} << kAreaShift;
inline constexpr unsigned kUnitsOfArea = kAreaBytes / kUnitBytes;

inline constexpr unsigned kAddressBits = platform::kAddressBits;
static_assert(kUnitBytes >= platform::kPageBytesMax, "units are whole pages");
// Of a word that holds an address and above it a number.
inline constexpr std::uintptr_t kAddressMask = (std::uintptr_t{1} << kAddressBits) - 1;

inline constexpr std::size_t kBlockAlignment = 16;  // of every block, as alignof(std::max_align_t) asks

// The step between classes in a word of the page map: the size of a list in a thread heap, in bytes.
inline constexpr std::size_t kWordStep = 16;
// Of thread heaps, so that a word of the page map has room for the class below the owner's address.
inline constexpr std::size_t kHeapAlignment = 4096;

// A slab or large block starts kColours lines at most after its span: see colour_of().
inline constexpr unsigned kColours = 16;
inline constexpr std::size_t kColourBytesMax = (kColours - 1) * platform::kCacheLineBytes;

inline std::uintptr_t address_of(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }
inline std::uintptr_t unit_of(const void* pointer) noexcept { return address_of(pointer) >> kUnitShift; }

constexpr std::size_t units_for(std::size_t bytes) noexcept { return (bytes + kUnitBytes - 1) >> kUnitShift; }

// Where in its first unit a span's contents begin, in bytes. Neighbouring units differ by 7 lines modulo 16, and units
// 32 MiB apart differ too: equal offsets of two slabs then lie neither in one cache set nor, in a table of 2^20 records
// of 32 bytes, on one ownership record (paper 000, section 5).
constexpr std::size_t colour_of(std::uintptr_t unit) noexcept {
  constexpr unsigned kUnitsOfRecordTable = (32u << 20) / kUnitBytes;
  return (7 * (unit + unit / kUnitsOfRecordTable)) % kColours * platform::kCacheLineBytes;
}

}  // namespace loam::heap
