// stock: a heap lends free blocks to the transactional memory, so that an abort returns any number of them by one store
// for each size.
//   A stock is an array of pointers to free blocks of one size. An attempt takes the block at `next` and increments
//   `next`; an abort resets `next` to where the attempt began. No data in the blocks is needed for this, because the
//   attempt has written to them.
//   The heap defines the three functions; they are missing in a process with another malloc.
//   Only its thread accesses a stock. The transactional memory writes `kept` and `attempt`, the heap the other members.
//   K1 behind the last block of a stock is a null. Blocks that the running attempt took are in [kept, next).
//   K2 blocks are put into a stock only between attempts, because they go to the places of blocks that were taken.
//   K3 the second word of a block in a stock is the heap's mark. Taking the block sets it to 0. After an abort the mark
//      may be missing.
//   K4 a block that is put into a stock is of its class and was cut by the thread's own heap. Blocks of other heaps are
//   not.
#pragma once

#include "runtime/platform/machine.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::platform {

// Sizes are rounded up to a multiple of the step; above the maximum there are no stocks.
inline constexpr std::size_t kStockStep = 16, kStockBytesMax = 1024;
inline constexpr std::size_t kStockSizes = kStockBytesMax / kStockStep + 1;

inline constexpr std::uint64_t kNoAttempt = ~std::uint64_t{0};

struct Stock {
  void** next;            // the next block
  void** kept;            // the value of `next` when the attempt took its first block
  std::uint64_t attempt;  // the attempt that wrote `kept`; kNoAttempt: none
  void** first;           // no block is put below
};

// A thread's stocks, by size in steps. Neighbours may be the same one.
struct Stocks {
  std::array<Stock*, kStockSizes> of;
  // How a block is known (K4): the word of its unit of 2^16 bytes in the heap's map, for addresses below the map's end.
  std::array<std::uintptr_t, kStockSizes> word_of;
  const std::atomic<std::uintptr_t>* words;
  std::uintptr_t units;  // 0: there are no stocks, every one of them is empty
  std::uintptr_t mark;   // of blocks that are free
};
inline constexpr unsigned kStockUnitShift = 16;

// The stocks of a thread to which no heap lends blocks. They are never written.
inline constinit void* nothing = nullptr;
inline constinit Stock empty_stock{&nothing, &nothing, kNoAttempt, &nothing};
inline constinit Stocks no_stocks = [] {
  Stocks none{};
  for (Stock*& stock : none.of) stock = &empty_stock;
  return none;
}();

// Between attempts (K2). returns false where the stock is full
[[gnu::always_inline]] inline bool put(Stock& stock, void* block, std::uintptr_t mark) noexcept {
  if (stock.next <= stock.first) return false;
  static_cast<std::uintptr_t*>(block)[1] = mark;
  *--stock.next = block;
  return true;
}

// The same of a block whose size is believed to be in this slot. returns false where it is another, not the thread's own,
// or free
[[gnu::always_inline]] inline bool put(const Stocks& stocks, std::size_t slot, void* block) noexcept {
  const std::uintptr_t unit = reinterpret_cast<std::uintptr_t>(block) >> kStockUnitShift;
  // relaxed: a thread that has a block received it by a path with the right order (the heap's page map, page_map.A)
  return unit < stocks.units && stocks.words[unit].load(std::memory_order_relaxed) == stocks.word_of[slot] &&
         static_cast<std::uintptr_t*>(block)[1] != stocks.mark && put(*stocks.of[slot], block, stocks.mark);
}

}  // namespace loam::platform

extern "C" {
// Lends the calling thread's heap's stocks: *user names them, until the heap leaves its thread or lends them to another
// user. Then *user is again what it was. user: nullptr ends it at once. returns 0 where nothing is lent: another malloc
// serves the process, or this one watches every call (hardened, guard pages)
LOAM_MAY_BE_MISSING int loam_malloc_lend(const loam::platform::Stocks** user);
// Adds some blocks to a stock that was lent. kept <= next. returns 0 where there is no memory
LOAM_MAY_BE_MISSING int loam_malloc_restock(loam::platform::Stock* stock);
// As free(). Between attempts: the block may go to the thread's stock.
LOAM_MAY_BE_MISSING void loam_malloc_give(void* block);
}
