// Remote free: blocks that a thread frees and another thread's heap owns.
//   Source batches to the owner's queue, as in snmalloc (Lietar et al., ISMM 2019). Ours have blocks of one class, so a
//   batch is a free list for the owner, which does not read through it.
//
//   Outbox: the freeing thread collects blocks by owner and class in 64 slots; a batch is 32 blocks or at most 16 KiB.
//   All but the first block of a batch are added in few instructions. The freeing thread waits for cache lines that
//   other threads have written; with fewer instructions per block, it waits for more lines at the same time (ADR 0020).
//
//   Inbox: a stack of batches for each class. Any thread pushes; the owner empties it in one exchange.
//
//   Chain: the batches that the owner took out of an inbox. It touches only the first block of each batch.
//
//   Cost: a free is 43 instructions, a batch one compare-and-swap and one addition.
//   When not: a sender that stops keeps at most 31 blocks a slot until it ends.
//
//   R1 blocks of a batch are of one owner and class, linked with the owner's key; the last link is the end of the list.
//   They count as out in their slab.
//   R2 a slot that collects for a word of the page map has one block or more, and room for another.
//   R3 in a sent batch the chain word of the first block holds the next batch and the length.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/zeroed.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace loam::heap {

using Batch = BlockList;

// The word of a sent batch's first block that holds the next batch and the length. It is the third word, so the mark in
// the second word still says that the block is free. Blocks of 16 bytes have only two words and lose their mark.
enum class ChainWord : unsigned { mark = 1, third = 2 };

// Sent batches of one class. When they come out of an inbox, the batch that was sent last is the first one.
class Chain {
 public:
  Chain() noexcept = default;
  explicit Chain(FreeBlock* first) noexcept : first_(first) {}

  bool empty() const noexcept { return first_ == nullptr; }

  // Takes out the first batch. Restores the mark of its first block, and prefetches the next batch's first block.
  Batch pop(Key owner, ChainWord place) noexcept {
    const Batch batch = batch_at(first_, place);
    first_ = below(first_, place);
    __builtin_prefetch(first_);
    batch.first->mark = owner;
    return batch;
  }

  // Reverses the order of the batches. returns the number of blocks. Touches only the first block of each batch
  std::uint64_t turn(ChainWord place) noexcept {
    FreeBlock* turned = nullptr;
    std::uint64_t blocks = 0;
    while (first_ != nullptr) {
      const Batch batch = batch_at(first_, place);
      first_ = below(first_, place);
      link(batch, turned, place);
      turned = batch.first;
      blocks += batch.count;
    }
    first_ = turned;
    return blocks;
  }

  // visit(batch): nullptr, or what ends the walk and is returned.
  template <class Visit>
  const char* for_each(ChainWord place, Visit visit) const noexcept {
    const char* found = nullptr;
    for (FreeBlock* at = first_; at != nullptr && found == nullptr; at = below(at, place))
      found = visit(batch_at(at, place));
    return found;
  }

  static void link(Batch batch, const FreeBlock* below, ChainWord place) noexcept {
    word(batch.first, place) = address_of(below) | std::uintptr_t{batch.count} << kAddressBits;
  }

 private:
  static std::uintptr_t& word(FreeBlock* first, ChainWord place) noexcept {
    return reinterpret_cast<std::uintptr_t*>(first)[static_cast<unsigned>(place)];
  }
  static Batch batch_at(FreeBlock* first, ChainWord place) noexcept {
    return {first, static_cast<std::uint32_t>(word(first, place) >> kAddressBits)};
  }
  static FreeBlock* below(FreeBlock* first, ChainWord place) noexcept {
    return reinterpret_cast<FreeBlock*>(word(first, place) & kAddressMask);
  }

  FreeBlock* first_ = nullptr;
};

// The batches of one class that were sent to a heap.
class Inbox {
 public:
  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }  // a hint

  void push(Batch batch, ChainWord place) noexcept {
    FreeBlock* below = top_.load(std::memory_order_relaxed);
    do {
      Chain::link(batch, below, place);
      LOAM_POINT("heap.pushing");
      // inbox.A: release pairs with the acquire in take_all(): the owner sees the links, and what the freeing thread
      // did with the blocks before. seq_cst for tending.A, which reads the owner's state behind it.
    } while (!top_.compare_exchange_weak(below, batch.first, std::memory_order_seq_cst, std::memory_order_relaxed));
    blocks_.fetch_add(batch.count, std::memory_order_relaxed);  // a count for people
  }

  // Takes all batches that were sent so far. For the owner.
  Chain take_all() noexcept {
    if (empty()) return {};
    LOAM_POINT("heap.taking");
    FreeBlock* const first = top_.exchange(nullptr, std::memory_order_acquire);  // inbox.A
    LOAM_POINT("heap.taken");
    return Chain(first);
  }

  // Blocks sent since the heap was made.
  std::uint64_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }

 private:
  std::atomic<FreeBlock*> top_{nullptr};
  std::atomic<std::uint64_t> blocks_{0};  // beside top_: a thread that adds has just written this line
};
static_assert(kAddressBits + 16 <= 64, "an address and a length fit into one word");

// Batches that a thread collects for other heaps. Send is called as send(word, batch): it pushes the batch into the
// inbox that the word names.
template <class Owner>
class Outbox {
 public:
  static constexpr unsigned kSlots = 64;
  static constexpr std::uint32_t kBatch = 32;
  static constexpr std::size_t kBatchBytes = 16u << 10;

  constexpr Outbox() noexcept : slots_{} { slots_[index_of(0)].word = kNone; }
  explicit Outbox(Zeroed) noexcept { slots_[index_of(0)].word = kNone; }

  // Whether a batch has been begun for blocks of units with this word.
  [[gnu::always_inline]] bool collects(PageMap::Word word) const noexcept {
    return slots_[index_of(word)].word == word;
  }

  // Adds a block to the batch that collects for this word.
  template <class Send>
  [[gnu::always_inline]] void add(FreeBlock* block, PageMap::Word word, Key key, Send send) noexcept {
    Slot& slot = slots_[index_of(word)];
    block->mark = key;
    block->link = encoded(address_of(slot.first), key);
    slot.first = block;
    if (--slot.room == 0) [[unlikely]]
      flush(slot, send);
  }

  // A block, whether or not a batch collects for this word. Inlined: a block of 16 KiB and more is a batch.
  template <class Send>
  [[gnu::always_inline]] void put(FreeBlock* block, PageMap::Word word, std::size_t block_bytes, Send send) noexcept {
    const Key key = Owner::owner_of(word)->key();
    if (collects(word)) return add(block, word, key, send);
    Slot& slot = slots_[index_of(word)];
    flush(slot, send);
    put_before(block, nullptr, key);
    const auto length = static_cast<std::uint32_t>(std::clamp<std::size_t>(kBatchBytes / block_bytes, 1, kBatch));
    slot = {word, block, length - 1, length};
    if (slot.room == 0) flush(slot, send);
  }

  template <class Send>
  void flush_all(Send send) noexcept {
    for (Slot& slot : slots_) flush(slot, send);
  }

 private:
  static constexpr PageMap::Word kNone = 1;  // not the word of a slab, and not the word of a unit that is not ours

  struct alignas(32) Slot {
    PageMap::Word word;
    FreeBlock* first;            // nullptr: the slot collects nothing
    std::uint32_t room, length;  // blocks that are still missing; blocks of the full batch
  };
  // A slot of zeroes collects nothing either, except the slot that the word 0 leads to.

  // Classes of one owner get slots of their own.
  static constexpr unsigned index_of(PageMap::Word word) noexcept {
    return (word / kWordStep + 13 * (word / kHeapAlignment)) % kSlots;
  }

  template <class Send>
  [[gnu::noinline]] static void flush(Slot& slot, Send send) noexcept {
    if (slot.first == nullptr) return;
    const PageMap::Word word = slot.word;
    const Batch batch{slot.first, slot.length - slot.room};
    slot.word = kNone;
    slot.first = nullptr;
    send(word, batch);
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace loam::heap
