// stock: a heap lends free blocks to the transactional memory, so that an abort returns any number of them by one store
// for each size.
//   A stock is an array of pointers to free blocks of one size. An attempt takes the block at `next` and increments
//   `next`; an abort resets `next` to where the attempt began. No data in the blocks is needed for this, because the
//   attempt has written to them.
//   A hardware attempt takes blocks in the same way. When it aborts, the hardware resets `next`. So it does not need
//   `kept` and `attempt`, and touches two cache lines: that of the stock and that of the next pointers. It cannot add
//   blocks to a stock, nor touch a page for the first time. So this is done before it begins: if the stock is below its
//   low-water mark, the heap fills it.
//   The heap defines the four functions; they are missing in a process with another malloc.
//   Only its thread accesses a stock. The transactional memory writes `kept` and `attempt`, the heap the other members.
//   K1 behind the last block of a stock is a null. Blocks that the running attempt took are in [kept, next).
//   K2 blocks are put into a stock only between attempts, because they go to the places of blocks that were taken.
//   K3 the second word of a block in a stock is the heap's mark. Taking the block sets it to 0. After an abort the mark
//      may be missing.
//   K4 a block that is put into a stock is of its class and was cut by the thread's own heap. Blocks of other heaps are
//      not.
//   K5 once loam_malloc_refill() has returned 1, next <= low, and the pages of the blocks that it has added are backed.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace loam::platform {

// There is a stock for each of the heap's classes up to here.
inline constexpr std::size_t kStockBytesMax = (32u << 10) + kCacheLineBytes;
inline constexpr unsigned kStocks = 40;

// The number of the stock that serves a size. There is a stock for each 16 bytes up to 128 bytes, then four stocks for
// each doubling. From 1 KiB on, blocks are one cache line longer than this. bytes <= kStockBytesMax
constexpr unsigned stock_of(std::size_t bytes) noexcept {
  if (bytes <= 128) return bytes == 0 ? 0 : static_cast<unsigned>((bytes - 1) / 16);
  const std::size_t last = bytes - (bytes <= 1024 ? 1 : 1 + kCacheLineBytes);
  const auto log2 = static_cast<unsigned>(std::bit_width(last)) - 1;
  return 8 + (log2 - 7) * 4 + static_cast<unsigned>(last >> (log2 - 2) & 3);
}
static_assert(stock_of(128) == 7 && stock_of(129) == 8 && stock_of(1024) == 19 && stock_of(1088) == 19 &&
              stock_of(1089) == 20 && stock_of(kStockBytesMax) == kStocks - 1);

inline constexpr std::uint64_t kNoAttempt = ~std::uint64_t{0};

struct alignas(kCacheLineBytes) Stock {
  void** next;            // the next block
  void** kept;            // the value of `next` when the attempt took its first block
  std::uint64_t attempt;  // the attempt that wrote `kept`; kNoAttempt: none
  void** first;           // put() stores no pointer below this place
  void** low;             // the low-water mark; the stock's end if no hardware attempt has found the stock empty
  std::uintptr_t word;    // in the heap's map: the word of units of 2^16 bytes that have this stock's blocks (K4)
};

// A thread's stocks, by stock_of().
struct Stocks {
  std::array<Stock, kStocks> all;
  const std::atomic<std::uintptr_t>* words;  // the heap's map
  std::uintptr_t units;                      // the map's length; 0: no heap lends stocks, and all of these are empty
  std::uintptr_t mark;                       // of free blocks
};
inline constexpr unsigned kStockUnitShift = 16;

// Empty stocks. They are never written.
inline constinit void* nothing = nullptr;
constexpr Stocks empty_stocks(std::uintptr_t units) noexcept {
  Stocks none{};
  for (Stock& stock : none.all) stock = {&nothing, &nothing, kNoAttempt, &nothing, &nothing, 0};
  none.units = units;
  return none;
}
// The stocks of a thread to which no heap lends blocks.
inline constinit Stocks no_stocks = empty_stocks(0);

// Puts a block onto a stock, between attempts (K2). returns false where the stock is full
[[gnu::always_inline]] inline bool put(Stock& stock, void* block, std::uintptr_t mark) noexcept {
  if (stock.next <= stock.first) return false;
  static_cast<std::uintptr_t*>(block)[1] = mark;
  *--stock.next = block;
  return true;
}

// The same for a block that probably belongs to this stock. returns false also where it is of another class, of another
// thread's heap, or free
[[gnu::always_inline]] inline bool put(Stocks& stocks, unsigned number, void* block) noexcept {
  const std::uintptr_t unit = reinterpret_cast<std::uintptr_t>(block) >> kStockUnitShift;
  Stock& stock = stocks.all[number];
  // relaxed: a thread that has a block received it by a path with the right order (the heap's page map, page_map.A)
  return unit < stocks.units && stocks.words[unit].load(std::memory_order_relaxed) == stock.word &&
         static_cast<std::uintptr_t*>(block)[1] != stocks.mark && put(stock, block, stocks.mark);
}

}  // namespace loam::platform

extern "C" {
// Lends the stocks of the calling thread's heap: *user points to them until the heap leaves its thread or lends them to
// another user. Then *user gets its former value back. With nullptr as `user` the loan ends at once. returns 0 where
// nothing is lent: another malloc serves the process, or this one checks every call (hardened, guard pages)
LOAM_MAY_BE_MISSING int loam_malloc_lend(loam::platform::Stocks** user);
// Adds some blocks to a stock that was lent. kept <= next. returns 0 where there is no memory
LOAM_MAY_BE_MISSING int loam_malloc_restock(loam::platform::Stock* stock);
// Between attempts: fills a stock up to its low-water mark (K5). was_short: a hardware attempt has found the stock
// empty; if it had been full up to the mark, the mark is raised first. returns 0 where there is no memory, or the mark
// cannot rise further
LOAM_MAY_BE_MISSING int loam_malloc_refill(loam::platform::Stock* stock, int was_short);
// As free(). Between attempts: the block may go to the thread's stock.
LOAM_MAY_BE_MISSING void loam_malloc_give(void* block);
}
