// stock: how a heap lends blocks to the one who runs transactions, so that an abort gives back any number of them by one
// store for each size.
//   For each size a stock is an array of pointers to free blocks. An attempt takes the next one and moves on; an abort
//   moves back to where the attempt began. The blocks themselves hold nothing that this needs: the attempt has written to
//   them.
//   A hardware attempt takes in the same way. What it has moved the hardware moves back: it needs neither `kept` nor
//   `attempt`, and touches two lines, the stock's and that of the next pointers. What an attempt cannot do, fetch blocks and
//   touch pages for the first time, is done before it begins: below a low-water mark the heap fills the stock.
//   The heap defines the four functions; they are missing in a process that another malloc serves.
//   A stock is its thread's alone. Who runs attempts keeps `kept` and `attempt`, the heap the rest.
//   K1 behind the last block of a stock stands a null. Blocks that the running attempt took lie in [kept, next).
//   K2 blocks come back to a stock only between attempts, since they go where those lie that were taken.
//   K3 the second word of a block in a stock is the heap's mark; who takes the block sets it to 0, and finds nothing there of
//      blocks that an abort has put back.
//   K4 what is put into a stock is a block of its class that the thread's own heap has cut: others stay with their threads.
//   K5 once loam_malloc_refill() has returned 1, next <= low, and the pages of what it has added are backed.
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

// The stock that serves a size: one for each 16 bytes up to 128, then four for each doubling. From 1 KiB on blocks are a line
// longer than that. bytes <= kStockBytesMax
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
  void** first;           // no block is put below
  void** low;             // the low-water mark; the stock's end where no hardware attempt has asked
  std::uintptr_t word;    // how a block of it is known (K4): the word of its unit of 2^16 bytes in the heap's map
};

// A thread's stocks, by stock_of().
struct Stocks {
  std::array<Stock, kStocks> all;
  const std::atomic<std::uintptr_t>* words;  // the heap's map
  std::uintptr_t units;                      // where it ends; 0: there are no stocks, every one of them is empty
  std::uintptr_t mark;                       // of blocks that are free
};
inline constexpr unsigned kStockUnitShift = 16;

// Stocks that are empty. Nobody writes to them.
inline constinit void* nothing = nullptr;
constexpr Stocks empty_stocks(std::uintptr_t units) noexcept {
  Stocks none{};
  for (Stock& stock : none.all) stock = {&nothing, &nothing, kNoAttempt, &nothing, &nothing, 0};
  none.units = units;
  return none;
}
// What a thread has to whom no heap lends.
inline constinit Stocks no_stocks = empty_stocks(0);

// Between attempts (K2). returns false where the stock is full
[[gnu::always_inline]] inline bool put(Stock& stock, void* block, std::uintptr_t mark) noexcept {
  if (stock.next <= stock.first) return false;
  static_cast<std::uintptr_t*>(block)[1] = mark;
  *--stock.next = block;
  return true;
}

// The same of a block that is believed to be of this stock. returns false where it is another's, not the thread's own, or
// free
[[gnu::always_inline]] inline bool put(Stocks& stocks, unsigned number, void* block) noexcept {
  const std::uintptr_t unit = reinterpret_cast<std::uintptr_t>(block) >> kStockUnitShift;
  Stock& stock = stocks.all[number];
  // relaxed: who owns a block got it by a path that orders (the heap's page map, page_map.A)
  return unit < stocks.units && stocks.words[unit].load(std::memory_order_relaxed) == stock.word &&
         static_cast<std::uintptr_t*>(block)[1] != stocks.mark && put(stock, block, stocks.mark);
}

}  // namespace loam::platform

extern "C" {
// Lends the calling thread's heap's stocks: *user names them, until the heap leaves its thread or lends them to another
// user. Then *user is again what it was. user: nullptr ends it at once. returns 0 where nothing is lent: another malloc
// serves the process, or this one watches every call (hardened, guard pages)
LOAM_MAY_BE_MISSING int loam_malloc_lend(loam::platform::Stocks** user);
// Adds some blocks to a stock that was lent. kept <= next. returns 0 where there is no memory
LOAM_MAY_BE_MISSING int loam_malloc_restock(loam::platform::Stock* stock);
// Between attempts: fills a stock up to its low-water mark (K5). was_short: a hardware attempt has found it empty; where it was
// full to the mark, that is raised. returns 0 where there is no memory, or the mark is as high as it gets
LOAM_MAY_BE_MISSING int loam_malloc_refill(loam::platform::Stock* stock, int was_short);
// As free(). Between attempts: the block may go to the thread's stock.
LOAM_MAY_BE_MISSING void loam_malloc_give(void* block);
}
