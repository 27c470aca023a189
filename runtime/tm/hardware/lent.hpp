// lent: the blocks of hardware attempts, if the process's malloc lends stocks (platform/stock.hpp).
//   An attempt takes the next block of a stock and increments the stock's pointer. If it aborts, the hardware resets
//   the pointer. So there is nothing to undo, however many blocks it took. Taking a block needs no call and no lock,
//   and touches no page for the first time.
//   An attempt that finds a stock empty aborts with a code that names the stock. Then the stock's low-water mark is
//   raised, the stock is filled, and the attempt begins again. After a commit the thread notes the stocks from which
//   blocks were taken. Before its next transaction it fills those of them that have fallen below their marks.
//   Cost      an allocation touches two cache lines besides the block: the stock's, and that of its next pointers.
//   When not  transactions that take more than a thousand blocks of a size: stocks for hardware attempts hold no more
//             (heap/stocks.hpp), so these transactions fall back each time.
//   Source    the stock's pointer and its low-water mark are ours; an attempt that aborts so that memory is provided
//             outside of it: paper 003.
#pragma once

#include "runtime/platform/provision.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/hardware/policy.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace loam::tm::hardware {

// The blocks that an attempt has taken. It lies on the stack of the thread, so an abort resets it.
struct Taken {
  std::uint64_t stocks = 0;  // a bit for each
  std::uint64_t blocks = 0;
};

// Takes a block from the stock with this number. nullptr: the stock is empty
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

// Aborts the attempt, which needs this stock filled. With a number that no stock has, it does nothing. It is called in
// this way once outside of attempts: if an attempt had to load the function's page, it would abort with another status.
[[gnu::noinline]] inline void abort_for_stock(unsigned number) noexcept {
  [number]<std::size_t... kNumber>(std::index_sequence<kNumber...>) {
    ((number == kNumber ? platform::transaction_abort<kRestockCode + kNumber>() : void()), ...);
  }(std::make_index_sequence<platform::kStocks>{});
}

// Before an attempt: fills the stocks that have fallen below their low-water marks. used: a bit for each stock to check
[[gnu::noinline]] inline void refill(platform::Stocks& stocks, std::uint64_t used) noexcept {
  if (stocks.units == 0) return;  // the loan has ended meanwhile
  for (; used != 0; used &= used - 1) {
    platform::Stock& stock = stocks.all[static_cast<std::size_t>(std::countr_zero(used))];
    if (stock.next > stock.low) loam_malloc_refill(&stock, 0);
  }
}

// After an attempt that aborted with a code for Next::provide: calls the allocator, which provides what the code asks
// for. returns false if it cannot
inline bool provide(platform::Stocks& stocks, unsigned code) noexcept {
  if (!is_restock(code)) {
    loam_provision(platform::provision_bytes(code));
    return true;
  }
  return stocks.units != 0 && loam_malloc_refill(&stocks.all[code - kRestockCode], 1) != 0;
}

}  // namespace loam::tm::hardware
