// Shelf: lists of free blocks that a thread has put away whole and takes up again whole, the last one first.
//   Bounded by lists of a class and by bytes, of middling blocks and of all others; what does not fit goes to the
//   slabs.
//
//   Cost: some stores; only lists of middling blocks are walked.
//
//   Middling blocks (1 to 2 KiB, "medium-sized" in the docs): the link to the next block lies in the block's cache
//   line. If a list's blocks are in random order, and there are more of them than the nearest cache has lines, malloc
//   waits for a miss per block. (Shorter blocks share lines and pages; a program holds few longer ones.) So lists of
//   middling blocks stay short, and four of them are walked at the same time before they serve: four chains of misses
//   take the time of one (ADR 0019). If the lists' first blocks are in the order of their addresses, as after frees in
//   order, they are not walked: the processor's own prefetching is enough.
//
//   Short blocks: a program's structures lie in memory in the order in which malloc hands out blocks. Blocks that are
//   freed here and there and kept in lists never get back into order. A slab hands out all its free blocks, then the
//   next slab does. So a class keeps few lists of short blocks, and more only while they begin close to each other (ADR
//   0021).
//
//   H1 a class has at most lists_max(class) lists, and all together kBytesMax; of middling blocks it is
//   kMiddlingBytesMax. A list of short blocks above the first kStrayListsMax begins close to the one below it.
//   H2 the top `near` lists were freed or walked last: their lines are probably in the cache, so they are not walked.
#pragma once

#include "runtime/heap/free_block.hpp"
#include "runtime/heap/size_classes.hpp"
#include "runtime/heap/zeroed.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace loam::heap {

template <SizeClasses Classes>
class Shelf {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20, kMiddlingBytesMax = std::size_t{2} << 20;

  struct List {
    FreeBlock* first;
    std::uint32_t count;
    bool is_old;  // it lay here when the heap looked last
  };

  constexpr Shelf() noexcept : rows_{}, bytes_{}, lists_{} {}
  explicit Shelf(Zeroed) noexcept {}

  static constexpr bool is_middling(unsigned c) noexcept {
    return !heap::is_short(Classes::bytes_of(c)) && Classes::bytes_of(c) < kLongBytes;
  }

  static constexpr std::uint32_t lists_max(unsigned c) noexcept { return is_middling(c) ? 64 : 16; }
  // Of short blocks: lists that are kept wherever they lie, and how far from each other the others may begin.
  static constexpr std::uint32_t kStrayListsMax = 4;
  static constexpr std::uintptr_t kCloseBytes = 256u << 10;

  // returns false if there is no room for the list, which then stays with the caller.
  bool put(unsigned c, const BlockList& list) noexcept {
    Row& row = rows_[c];
    const std::size_t bytes = bytes_[is_middling(c)] + bytes_of(list, c);
    if (row.lists == lists_max(c) || bytes > (is_middling(c) ? kMiddlingBytesMax : kBytesMax)) return false;
    if (is_short(c) && row.lists >= kStrayListsMax && !begin_close(list, lists_[kBegins[c] + row.lists - 1]))
      return false;
    lists_[kBegins[c] + row.lists++] = {list.first, list.count, false};
    bytes_[is_middling(c)] = bytes;
    row.near = std::min(row.near + 1, kAbreast);
    return true;
  }

  // key: the heap's, which the links are encoded with. returns no blocks where the class has none here.
  // Inlined in every build: for long blocks it is called every few calls of malloc.
  [[gnu::always_inline]] BlockList take(unsigned c, Key key) noexcept {
    Row& row = rows_[c];
    if (row.lists == 0) return {nullptr, 0};
    if (is_middling(c)) {
      if (row.near == 0 && row.lists >= kAbreast) {
        const List* const next = &lists_[kBegins[c] + row.lists - kAbreast];
        if (!is_in_order(next)) walk(next, key);
        row.near = kAbreast;
      }
      if (row.near != 0) --row.near;
    }
    const List& shelved = lists_[kBegins[c] + --row.lists];
    const BlockList list{shelved.first, shelved.count};
    bytes_[is_middling(c)] -= bytes_of(list, c);
    return list;
  }

  // Gives the lists of a class that lay here when this was called last: give(c, first).
  template <class Give>
  void give_old(unsigned c, Give give) noexcept {
    Row& row = rows_[c];
    List* const lists = &lists_[kBegins[c]];
    std::uint32_t old = 0;
    for (; old < row.lists && lists[old].is_old; ++old) {
      bytes_[is_middling(c)] -= bytes_of({lists[old].first, lists[old].count}, c);
      give(c, lists[old].first);
    }
    row.lists -= old;
    row.near = std::min(row.near, row.lists);
    for (std::uint32_t i = 0; i < row.lists; ++i) {
      lists[i] = lists[old + i];
      lists[i].is_old = true;
    }
  }

  // The lists of a class, the one that serves next last.
  std::span<const List> lists(unsigned c) const noexcept {
    return std::span(lists_).subspan(kBegins[c], rows_[c].lists);
  }

 private:
  static constexpr std::uint32_t kAbreast = 4;

  struct Row {
    std::uint32_t lists, near;
  };

  static constexpr auto kBegins = [] {
    std::array<std::uint32_t, Classes::kClasses + 1> begins{};
    for (unsigned c = 0; c < Classes::kClasses; ++c) begins[c + 1] = begins[c] + lists_max(c);
    return begins;
  }();

  static std::size_t bytes_of(const BlockList& list, unsigned c) noexcept { return list.count * Classes::bytes_of(c); }

  static constexpr bool is_short(unsigned c) noexcept { return heap::is_short(Classes::bytes_of(c)); }

  static bool begin_close(const BlockList& a, const List& b) noexcept {
    const std::uintptr_t low = std::min(address_of(a.first), address_of(b.first));
    return std::max(address_of(a.first), address_of(b.first)) - low <= kCloseBytes;
  }

  static bool is_in_order(const List* lists) noexcept {
    std::uint32_t ascents = 0;
    for (std::uint32_t i = 1; i < kAbreast; ++i) ascents += lists[i - 1].first < lists[i].first ? 1 : 0;
    return ascents == 0 || ascents == kAbreast - 1;
  }

  // Reads every link of kAbreast lists, as far as the shortest goes.
  [[gnu::noinline]] static void walk(const List* lists, Key key) noexcept {
    std::array<const FreeBlock*, kAbreast> at;
    std::uint32_t count = lists[0].count;
    for (std::uint32_t i = 0; i < kAbreast; ++i) {
      at[i] = lists[i].first;
      count = std::min(count, lists[i].count);
    }
    for (; count > 1; --count)
      for (const FreeBlock*& block : at) block = reinterpret_cast<const FreeBlock*>(decoded(block->link, key));
    for (const FreeBlock* block : at) __builtin_prefetch(block);
    platform::compiler_barrier();  // or the compiler finds no effect here, and no reason to call
  }

  std::array<Row, Classes::kClasses> rows_;
  std::array<std::size_t, 2> bytes_;  // [0]: of all other blocks, [1]: of middling blocks
  std::array<List, kBegins[Classes::kClasses]> lists_;
};

}  // namespace loam::heap
