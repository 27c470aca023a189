// Stripping a slab: pages of it in which every block is free return to the system, while blocks of other pages are in
// use. When the sizes that a program asks for drift, a slab of 64 KiB keeps a block or two of the old size for long.
//   The links of free blocks lie in the blocks, so a free block that reaches into such a page leaves the slab's free
//   list. It is noted at its place, in a set of bits beside the slab (serving_order.hpp). Blocks that are noted serve
//   after those that are listed, those of one page at a time.
//   Source: pages of a span given back by the page, as in TCMalloc's back end for huge pages; ours are pages within a
//   slab, of which blocks are in use.
//   Cost: a walk through the slab's free list, a call of the system for each run of pages, a page fault for each page
//   that serves again.   When not: blocks that serve again soon.
//   P1 where no block of a page is listed or in use, and blocks begin or end there, no memory is behind the page.
//   P2 a noted block's mark is lost.
#pragma once

#include "runtime/heap/area.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/serving_order.hpp"
#include "runtime/heap/span_store.hpp"

#include <algorithm>
#include <array>
#include <bitset>

namespace loam::heap {

// The blocks of a slab and its pages. bytes: of a block
template <SpanStore Spans>
class Stripping {
 public:
  static constexpr unsigned kUnitsMax = 8;  // of a slab

  Stripping(Span& slab, std::size_t bytes, Key owner) noexcept
      : slab_(slab),
        owner_(owner),
        bytes_(bytes),
        begin_(slab.blocks - address_of(slab.blocks) % kUnitBytes),
        places_(&Spans::places_of(&slab)) {}

  // Gives back every page of which no block is in use. returns the number of pages
  unsigned strip() noexcept {
    count_blocks();
    for (const FreeBlock* block = slab_.free_list; block != nullptr; block = next_of(block, owner_)) {
      const Pages pages = pages_of(block);
      for (unsigned page = pages.first; page <= pages.last; ++page) {
        --in_use_[page];
        goes_[page] = true;
      }
    }
    for_noted([this](const FreeBlock* block) {
      const Pages pages = pages_of(block);
      for (unsigned page = pages.first; page <= pages.last; ++page) --in_use_[page];
    });
    for (unsigned page = 0; page < kPagesMax; ++page)
      if (in_use_[page] != 0) goes_[page] = false;
    if (goes_.none()) return 0;
    note_what_goes();
    return purge();
  }

  // The noted blocks that begin in the page of the lowest one, no longer noted: a list. The slab has a noted block.
  BlockList take() noexcept {
    unsigned unit = 0, place = 0;
    while ((place = places_[unit].next_set(0)) == kPlaces) ++unit;
    std::byte* const begin = begin_ + unit * kUnitBytes;
    const unsigned end = base::round_up(place + 1, kPlacesOfPage);
    const auto block_at = [begin](unsigned at) { return reinterpret_cast<FreeBlock*>(begin + at * kBlockAlignment); };
    BlockList list{block_at(place), 1};
    places_[unit].clear(place, 1);
    for (FreeBlock* last = list.first;; last = block_at(place), ++list.count) {
      place = places_[unit].next_set(place + 1);
      link_to(last, place < end ? block_at(place) : nullptr, owner_);
      if (place >= end) return list;
      places_[unit].clear(place, 1);
    }
  }

 private:
  static constexpr unsigned kPlaces = kUnitBytes / kBlockAlignment,
                            kPlacesOfPage = platform::kPageBytes / kBlockAlignment,
                            kPagesMax = kUnitsMax * kUnitBytes / platform::kPageBytes;

  struct Pages {
    unsigned first, last;
  };
  Pages pages_of(const void* block) const noexcept {
    const std::size_t at = address_of(block) - address_of(begin_);
    return {static_cast<unsigned>(at / platform::kPageBytes),
            static_cast<unsigned>((at + bytes_ - 1) / platform::kPageBytes)};
  }

  // in_use_: first all blocks that were made.
  void count_blocks() noexcept {
    for (std::uint32_t i = 0; i < slab_.carved; ++i) {
      const Pages pages = pages_of(slab_.blocks + i * bytes_);
      for (unsigned page = pages.first; page <= pages.last; ++page) ++in_use_[page];
    }
  }

  template <class Visit>
  void for_noted(Visit visit) const noexcept {
    for (unsigned unit = 0; unit < slab_.units; ++unit)
      for (unsigned place = places_[unit].next_set(0); place < kPlaces; place = places_[unit].next_set(place + 1))
        visit(reinterpret_cast<const FreeBlock*>(begin_ + unit * kUnitBytes + place * kBlockAlignment));
  }

  void note_what_goes() noexcept {
    FreeBlock *block = slab_.free_list, *last = nullptr;
    slab_.free_list = nullptr;
    while (block != nullptr) {
      FreeBlock* const next = next_of(block, owner_);
      const Pages pages = pages_of(block);
      bool goes = false;
      for (unsigned page = pages.first; page <= pages.last; ++page) goes |= goes_[page];
      if (goes) {
        places_[unit_of(block) - unit_of(begin_)].set(place_of(block), 1);
        ++slab_.noted;
      } else {
        if (last == nullptr)
          slab_.free_list = block;
        else
          link_to(last, block, owner_);
        last = block;
      }
      block = next;
    }
    if (last != nullptr) link_to(last, nullptr, owner_);
  }

  unsigned purge() noexcept {
    unsigned purged = 0;
    for (unsigned first = 0, end; first < kPagesMax; first = end + 1) {
      end = first;
      while (end < kPagesMax && goes_[end]) ++end;
      if (end == first) continue;
      Spans::purge(begin_ + first * platform::kPageBytes, (end - first) * platform::kPageBytes);
      purged += end - first;
    }
    return purged;
  }

  Span& slab_;
  const Key owner_;
  const std::size_t bytes_;
  std::byte* const begin_;
  UnitPlaces* const places_;                       // of each of the slab's units
  std::array<std::uint16_t, kPagesMax> in_use_{};  // blocks that reach into the page and are not free
  std::bitset<kPagesMax> goes_{};                  // pages
};

}  // namespace loam::heap
