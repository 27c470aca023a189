// Lending: lends a thread's stocks to its transactions (platform/stock.hpp has the interface).
//   Cost: a block that returns after a commit takes about as many instructions as a free. A lot of blocks is taken from
//   a list by reading their links, as a malloc of each would do. If a stock has a low-water mark, one byte of each page
//   of a block is written when the block is added.
//   When not: hardened heaps, and those with samples, check every call. They lend nothing, and transactions call
//   malloc.
#pragma once

#include "runtime/heap/heap.hpp"
#include "runtime/heap/stocks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <span>

namespace loam::heap {

// Of the heap of a composition.
template <class C>
class Lending {
  using Heap = heap::Heap<C>;
  using Stocks = heap::Stocks<typename C::Classes>;

 public:
  // Lends the calling thread's stocks to `user`. returns false where this heap lends nothing, or has no memory
  static bool lend(platform::Stocks** user) noexcept {
    if (Heap::watches() || !Heap::attach()) return false;
    if (own().stocks() == nullptr) {
      if (!PageMap::is_open()) Heap::deallocate(Heap::allocate(1));
      if (!PageMap::is_open()) return false;
      void* const memory = C::Pages::metadata(sizeof(Stocks));
      if (memory == nullptr) return false;
      own().keep_stocks(::new (memory) Stocks(own().key()));
    }
    own().stocks()->lend_to(user);
    return true;
  }
  static void end() noexcept { own().end_loan(); }

  // Adds blocks to a stock that was lent to the calling thread. returns false where there is no memory
  [[gnu::noinline]] static bool restock(const platform::Stock& stock) noexcept {
    const unsigned c = own().stocks()->class_of(stock);
    return add_lot(c, Stocks::lot_of(c));
  }

  // Between attempts: fills a lent stock up to its low-water mark. If a hardware attempt has found the stock empty
  // although it was full up to the mark, raises the mark first. returns false where there is no memory, or the mark
  // cannot rise further
  [[gnu::noinline]] static bool refill(const platform::Stock& stock, bool was_short) noexcept {
    Stocks& stocks = *own().stocks();
    const unsigned c = stocks.class_of(stock);
    stocks.forget_attempt(c);
    if (was_short && !stocks.raise(c, C::Pages::metadata)) return false;
    while (const std::size_t missing = stocks.missing(c))
      if (!add_lot(c, static_cast<std::uint32_t>(std::min<std::size_t>(missing, Stocks::kLotMax)))) return false;
    return true;
  }

  // As deallocate(), between attempts: onto the thread's stock where there is room.
  [[gnu::always_inline]] static void give(void* block) noexcept {
    const std::uintptr_t unit = unit_of(block);
    if (unit < PageMap::limit() && own().push_stock(static_cast<FreeBlock*>(block), PageMap::at(unit))) [[likely]]
      return;
    Heap::deallocate(block);
  }

 private:
  static typename Heap::ThreadHeap& own() noexcept { return *Heap::current; }

  // Moves 1 to `most` blocks of a class from the thread's list to its stock.
  static bool add_lot(unsigned c, std::uint32_t most) noexcept {
    std::array<void*, Stocks::kLotMax> lot;
    std::uint32_t count = own().take_listed(c, lot.data(), most);
    if (count == 0) {
      // Heap::take() also fills the list of the class.
      lot[0] = Heap::take(c);
      if (lot[0] == nullptr) return false;
      count = 1 + own().take_listed(c, &lot[1], most - 1);
    }
    const std::span<void* const> blocks(lot.data(), count);
    if (own().stocks()->add(c, blocks, C::Pages::metadata)) return true;
    for (void* const block : blocks) {
      static_cast<FreeBlock*>(block)->mark = 0;
      Heap::deallocate(block);
    }
    return false;
  }
};

}  // namespace loam::heap
