// Area: 256 MiB of addresses that are divided into spans, with the metadata of each span. The metadata lies outside of
// the area: in users' pages the heap writes only words of free blocks.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/heap/serving_order.hpp"
#include "runtime/heap/unit_bits.hpp"

#include <atomic>

namespace loam::heap {

struct FreeBlock;

// reserved: of a heap that makes a slab of it later
enum class SpanKind : std::uint8_t { none, slab, large, reserved };
enum class Listed : std::uint8_t { no, giving, stripped, whole };

// The metadata of a span: the entry of its first unit in the area's array. Only the owner of a slab accesses the
// slab's.
struct alignas(platform::kCacheLineBytes) Span {
  SpanKind kind = SpanKind::none;
  std::uint8_t size_class = 0;     // slab
  Listed listed = Listed::no;      // slab: in which of its heap's lists of slabs that have blocks to give
  bool zero = false;               // all bytes were zero when it was taken
  bool moved = false;              // large: its pages came from another span, or went to one
  bool clean = false;              // no memory is behind it: for who gives it back
  std::uint16_t left = 0;          // slab: length of free_list when it was stripped
  std::uint32_t units = 0;         // of the whole span
  std::uint32_t first = 0;         // unit of the area in which it begins; set for every unit of it
  std::uint32_t capacity = 0;      // slab: blocks in all
  std::uint32_t carved = 0;        // slab: blocks made so far, the first ones
  std::uint32_t free = 0;          // slab: blocks that came back, in free_list or noted
  std::uint32_t noted = 0;         // slab: of these the ones that are noted at their places
  std::byte* blocks = nullptr;     // where the contents begin, behind the colour
  FreeBlock* free_list = nullptr;  // slab: blocks that came back, linked as the owner links
  Span* next = nullptr;            // slab: in its heap's list of the class
  Span* previous = nullptr;
};
static_assert(sizeof(Span) == platform::kCacheLineBytes);

// Both arrays are as long as the area has units; memory for more is not mapped. So under a tight limit of addresses the
// metadata of a short area is short.
struct Area {
  std::byte* base = nullptr;  // a multiple of kAreaBytes
  std::uint32_t units = 0;    // reserved; kUnitsOfArea, or fewer where the system gave less
  std::uint32_t hint = 0;     // no unit before it is free
  bool closed = false;        // units that no span has used yet are inaccessible
  Area* next = nullptr;       // the area that was made after this one
  UnitBits<kUnitsOfArea> used;
  UnitBits<kUnitsOfArea> once_used;  // so far
  // Of units that are not used: backed by memory; and so already when the decay looked last.
  UnitBits<kUnitsOfArea> dirty, aged;
  // Of slabs, for each of their units: free blocks that are not listed, by their places. The array begins where that of
  // the spans ends.
  UnitPlaces* noted = nullptr;
  Span spans[kUnitsOfArea];

  // Of an area of so many units.
  static constexpr std::size_t bytes_for(std::size_t units) noexcept {
    return sizeof(Area) - (kUnitsOfArea - units) * sizeof(Span) + units * sizeof(UnitPlaces);
  }
  void set_units(std::uint32_t count) noexcept {
    units = count;
    noted = reinterpret_cast<UnitPlaces*>(spans + count);
  }

  Span& span_of(const void* pointer) noexcept {
    Span& at = spans[(address_of(pointer) - address_of(base)) >> kUnitShift];
    return spans[at.first];
  }
};

}  // namespace loam::heap
