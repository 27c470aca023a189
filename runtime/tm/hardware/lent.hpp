// lent: the blocks of hardware attempts, where the process's malloc lends its own (platform/stock.hpp).
//   An attempt takes the next block of a stock and moves on. If it aborts, the hardware moves the stock back: there is
//   nothing to undo, however many blocks it took. It makes no call, takes no lock and touches no page for the first time.
//   An attempt that finds a stock empty ends itself and says which. The stock is then filled, its low-water mark raised, and the
//   attempt begins again. After a commit the stocks that it took from are remembered; before the next one those that have fallen
//   below their marks are filled.
//   Cost      an allocation touches two lines, the stock's and that of its next pointers, beside the block itself.
//   When not  transactions that take a thousand blocks of a size: their stocks hold no more (heap/stocks.hpp), so they fall
//             back each time.
//   Source    the counter and the low-water mark are ours; an attempt that ends to be provided for: paper 003.
#pragma once

#include "runtime/platform/provision.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/hardware/policy.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace loam::tm::hardware {

// What an attempt has taken. Lies on the stack of who runs it, so that an abort forgets it.
struct Taken {
  std::uint64_t stocks = 0;  // a bit for each
  std::uint64_t blocks = 0;
};

// Of the stock with this number. nullptr: it is empty
[[gnu::always_inline]] inline void* take(platform::Stocks& stocks, unsigned number, Taken& taken) noexcept {
  platform::Stock& stock = stocks.all[number];
  void* const block = *stock.next;
  if (block == nullptr) [[unlikely]]
    return nullptr;
  ++stock.next;
  static_cast<std::uintptr_t*>(block)[1] = 0;  // platform/stock.hpp: K3
  taken.stocks |= std::uint64_t{1} << number;
  return block;
}

// Ends the attempt, which needs this stock filled. With a number that no stock has it does nothing: so it is called once
// outside of attempts, since an attempt that had to fetch its page of code would end with another status.
[[gnu::noinline]] inline void abort_for_stock(unsigned number) noexcept {
  [number]<std::size_t... kNumber>(std::index_sequence<kNumber...>) {
    ((number == kNumber ? platform::transaction_abort<kRestockCode + kNumber>() : void()), ...);
  }(std::make_index_sequence<platform::kStocks>{});
}

// Before an attempt: fills those of these stocks that have fallen below their low-water marks.
[[gnu::noinline]] inline void refill(platform::Stocks& stocks, std::uint64_t used) noexcept {
  if (stocks.units == 0) return;  // they were taken back meanwhile
  for (; used != 0; used &= used - 1) {
    platform::Stock& stock = stocks.all[static_cast<std::size_t>(std::countr_zero(used))];
    if (stock.next > stock.low) loam_malloc_refill(&stock, 0);
  }
}

// After an attempt that ended with a code for Next::provide: has the allocator do what it asks for. returns false where that
// cannot be had
inline bool provide(platform::Stocks& stocks, unsigned code) noexcept {
  if (!is_restock(code)) {
    loam_provision(platform::provision_bytes(code));
    return true;
  }
  return stocks.units != 0 && loam_malloc_refill(&stocks.all[code - kRestockCode], 1) != 0;
}

}  // namespace loam::tm::hardware
