// Transactional malloc and free on top of the process's allocator.
//   allocate  returns a new block, which an abort takes back. Sizes are rounded up to 16 bytes, the granule of shadow
//             records.
//   Stocks    If the process's malloc has stocks of free blocks (platform/stock.hpp), blocks up to 32 KiB come from
//             these. An abort moves one pointer back for each size, however many blocks the attempt has taken. Other
//             blocks come from malloc and are kept in a log: an abort frees them one by one, the newest first. A
//             released block goes to its stock once it is quiescent.
//   Parts     A closed part can be undone alone. So its blocks are in this log, too, with the numbers of their stocks.
//             They return one by one, the newest first, each to the place from which it was taken.
//   release   takes effect only if the attempt commits, and then after quiescence: the block stays readable and is not
//             reused until every attempt that was running at the commit has ended.
//   Pools     An allocator with private pools may refuse a block to an attempt: the attempt then aborts, the pool is
//             provided, and the transaction runs again.
//   Policy    The memory that a thread holds back is bounded, even beside a stalled attempt (reclaim/epoch.hpp, Limits:
//             64 MiB). Over the bound the thread waits after its commit, for at most a second. Then it reports the
//             stall and doubles the bound. Nothing is freed early.
//   Source    the commit hooks of TinySTM, PPoPP 2008, with the epochs of reclaim/epoch.hpp in place of clock stamps.
#pragma once

#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace loam::tm::memory {

inline constexpr std::size_t kGranuleBytes = std::size_t{1} << kShadowShift;
constexpr std::size_t rounded(std::size_t bytes) noexcept { return (bytes + kGranuleBytes - 1) & ~(kGranuleBytes - 1); }

// Frees a block and counts it for the calling thread.
void free_counted(void* block);
// How blocks are freed between attempts: by std::free, or, after malloc has lent its stocks, by malloc's own function.
// relaxed: both functions accept any block, and neither depends on calls of the other
inline constinit std::atomic<reclaim::Deleter> give_back{&std::free};
// The same between attempts: puts the block into the thread's stock if there is room.
void free_retired(void* block);

// For the calling thread, whose descriptor is d: asks malloc to lend its stocks, or ends the loan.
void begin_loan(Descriptor& d) noexcept;
void end_loan(Descriptor& d) noexcept;

// The allocator has returned nullptr. If it can provide more outside of attempts (platform/provision.hpp), this attempt
// aborts with AbortCause::reprovision; otherwise std::bad_alloc is thrown.
[[noreturn]] void out_of_memory(Descriptor& d);

// Called between two attempts, after AbortCause::reprovision: lets the allocator provide the memory.
void provide(Descriptor& d) noexcept;

// Before the first attempt of the process: the allocator may ask whether a thread is in one that can be undone.
void watch_attempts() noexcept;

static_assert(platform::kStocks <= 64, "Descriptor::stocks_taken has a bit for each");

// Notes the position of this stock: an abort resets it to this position.
[[gnu::always_inline]] inline void begin_taking(Descriptor& d, platform::Stock& stock, unsigned number) noexcept {
  if (stock.attempt == d.statistics.commits) return;
  stock.attempt = d.statistics.commits;  // no commit has been since: the attempt, or one before it that aborted
  stock.kept = stock.next;
  d.stocks_taken |= std::uint64_t{1} << number;
}

// Takes a block from the stock with this number (platform::stock_of). nullptr: the stock is empty
[[gnu::always_inline]] inline void* take(Descriptor& d, unsigned number) noexcept {
  platform::Stock& stock = d.stocks->all[number];
  void* const block = *stock.next;
  if (block == nullptr) [[unlikely]]
    return nullptr;
  begin_taking(d, stock, number);
  ++stock.next;
  static_cast<Word*>(block)[1] = 0;  // platform/stock.hpp: K3
  return block;
}

// For an empty stock, and for parts: fills the stock if it is empty, and takes a block. nullptr: there is no memory
void* restock_and_take(Descriptor& d, unsigned number);

// Stocks that are always empty. A part uses them, so each of its allocations calls restock_and_take(), which notes the
// block in the log.
inline constinit platform::Stocks stocks_of_parts = platform::empty_stocks(1);
inline platform::Stocks* stocks_within(platform::Stocks* around) noexcept {
  return around->units == 0 ? around : &stocks_of_parts;
}

// An entry of Descriptor::allocated is a block's address. The bits above it are 0, or one more than the number of the
// stock from which a part took the block.
inline constexpr unsigned kAddressBits = 48;
inline bool is_of_stock(const void* entry) noexcept {
  return reinterpret_cast<std::uintptr_t>(entry) >> kAddressBits != 0;
}

// Frees an entry at the end of the attempt: one of a part that was undone, or any entry of an aborted attempt. If the
// attempt aborts, blocks from stocks are not freed, because they are back already.
void free_entry(void* entry, bool committed);

// Adds an entry to Descriptor::allocated.
[[gnu::always_inline]] inline void note(Descriptor& d, void* entry) noexcept {
  d.allocated.begin()[d.allocated_count] = entry;
  if (++d.allocated_count == d.allocated.capacity()) [[unlikely]]
    d.allocated.full();
}

// Takes a block from malloc. An abort frees it.
[[gnu::always_inline]] inline void* allocate_logged(Descriptor& d, std::size_t bytes) {
  void* const block = rounded(bytes) < bytes ? nullptr : std::malloc(rounded(bytes));
  if (block == nullptr) [[unlikely]]
    out_of_memory(d);
  note(d, block);
  return block;
}
// The same, not inlined, for blocks that normally come from a stock.
void* allocate_beside(Descriptor& d, std::size_t bytes);

// returns a block of at least `bytes`, aligned as malloc aligns; throws std::bad_alloc where malloc fails
template <bool kBlame>
[[gnu::always_inline]] inline void* allocate(Descriptor& d, std::size_t bytes) {
  void* block;
  // Checked first, so that transactions over another malloc pay three instructions for this, and no call.
  if (bytes <= platform::kStockBytesMax && d.stocks->units != 0) {
    const unsigned number = platform::stock_of(bytes);
    block = take(d, number);
    if (block == nullptr) [[unlikely]]
      block = restock_and_take(d, number);
    if (block == nullptr) [[unlikely]]
      block = allocate_beside(d, bytes);
  } else {
    block = allocate_logged(d, bytes);
  }
  ++d.statistics.blocks_allocated;
  if constexpr (kBlame) {
    blame::note_block(block, rounded(bytes));
    explain::allocated(block, rounded(bytes));
  }
  return block;
}

// The deleter of blocks whose size is known to be one of this stock's.
template <unsigned kStock>
void free_to_stock(void* block) {
  Descriptor& d = Descriptor::current_or_detached();
  ++d.statistics.blocks_freed;
  if (!platform::put(*d.stocks, kStock, block)) give_back.load(std::memory_order_relaxed)(block);  // relaxed: see there
}

// Longer blocks go to their stock by the heap's own function, which touches their pages if hardware attempts need that.
inline constexpr std::size_t kShortBytesMax = 1024;

template <std::size_t kBytes>
inline constexpr reclaim::Deleter kDeleterOf = [] {
  if constexpr (kBytes <= kShortBytesMax)
    return free_to_stock<platform::stock_of(kBytes)>;
  else
    return free_retired;
}();

// Frees `block` (nullptr: nothing) if the attempt commits. `bytes` is its size if known, 0 otherwise.
inline void release(Descriptor& d, void* block, std::size_t bytes, reclaim::Deleter deleter = free_retired) noexcept {
  if (block == nullptr) return;
  d.special = true;
  domain.propose(d.limbo, block, deleter, bytes);
}

// Frees the blocks allocated since the log of allocations had `count` entries: those of a part.
void undo_to(Descriptor& d, std::uint64_t count) noexcept;

// At an abort: frees the blocks that the attempt allocated, and forgets those that it released.
void undo(Descriptor& d) noexcept;

// Brings the descriptor's published counts up to date with its limbo.
inline void count_held(Descriptor& d) noexcept {
  // relaxed: counts, which order nothing
  d.held_blocks.store(d.limbo.blocks(), std::memory_order_relaxed);
  d.held_bytes.store(d.limbo.bytes(), std::memory_order_relaxed);
}

// Sets the counts to zero, for a descriptor that is about to hand its limbo over.
inline void count_none(Descriptor& d) noexcept {
  d.held_blocks.store(0, std::memory_order_relaxed);  // relaxed: as above
  d.held_bytes.store(0, std::memory_order_relaxed);
}

// Memory that commits have released and that is not freed yet.
struct HeldBack {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // of the blocks as far as their sizes are known (destroy), and of the lists that keep them
};

// Memory that waits for this thread; for all threads, those included that have ended. Can be called at any time. The
// figures may be slightly out of date, but are exact for threads that do not run transactions.
HeldBack held_back() noexcept;
HeldBack held_back_of_all() noexcept;

}  // namespace loam::tm::memory
