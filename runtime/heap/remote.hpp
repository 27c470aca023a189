// Remote free: blocks that a thread frees and another thread's heap owns.
//   Source batches to the owner's queue, as in snmalloc (Lietar et al., ISMM 2019); ours are of one class, and a batch
//   is spliced by its last block, so that the owner never walks it.
//
//   Outbox: the freeing thread collects blocks by owner and class in 64 slots; a batch is 32 blocks or at most 16 KiB.
//   All but the first block of a batch are added in few instructions. The freeing thread waits for cache lines that
//   other threads have written; with fewer instructions per block, it waits for more lines at the same time (ADR 0020).
//
//   Inbox: a stack of batches, pushed by anyone, emptied by the owner in one exchange.
//
//   Cost: a free is 43 instructions, a batch one compare-and-swap.
//   When not: a sender that stops keeps at most 31 blocks a slot until it ends.
//
//   R1 blocks of a batch are of one owner and class, linked with the owner's key, and count as out in their slab.
//   R2 a slot that collects for a word of the page map has one block or more, and room for another.
//   R3 in a sent batch the first block's mark holds the next batch and the length, the second block's the last block.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/page_map.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace loam::heap {

struct Batch {
  FreeBlock *first, *last;
  std::uint32_t count;
};

class Inbox {
 public:
  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }  // a hint

  void push(const Batch& batch, Key owner) noexcept {
    if (batch.count > 1) next_of(batch.first, owner)->mark = address_of(batch.last);
    FreeBlock* below = top_.load(std::memory_order_relaxed);
    do {
      batch.first->mark = address_of(below) | std::uintptr_t{batch.count} << kAddressBits;
      LOAM_POINT("heap.pushing");
      // inbox.A: release pairs with the acquire in take_all(): the owner sees the links, and what the freeing thread
      // did with the blocks before.
    } while (!top_.compare_exchange_weak(below, batch.first, std::memory_order_release, std::memory_order_relaxed));
  }

  // visit(batch) for each batch sent so far; the marks are right again.
  template <class Visit>
  void take_all(Key owner, Visit visit) noexcept {
    if (empty()) return;
    LOAM_POINT("heap.taking");
    FreeBlock* first = top_.exchange(nullptr, std::memory_order_acquire);  // inbox.A
    LOAM_POINT("heap.taken");
    while (first != nullptr) {
      Batch batch{first, first, static_cast<std::uint32_t>(first->mark >> kAddressBits)};
      auto* const below = reinterpret_cast<FreeBlock*>(first->mark & kAddressMask);
      first->mark = owner;
      if (batch.count > 1) {
        FreeBlock* const second = next_of(first, owner);
        batch.last = reinterpret_cast<FreeBlock*>(second->mark);
        second->mark = owner;
      }
      visit(batch);
      first = below;
    }
  }

 private:
  std::atomic<FreeBlock*> top_{nullptr};
};
static_assert(kAddressBits + 16 < 64, "an address and a length fit into one word");

// Batches that a thread collects for other heaps. Send: send(owner, batch), which pushes the batch into the owner's
// inbox.
template <class Owner>
class Outbox {
 public:
  static constexpr unsigned kSlots = 64;
  static constexpr std::uint32_t kBatch = 32;
  static constexpr std::size_t kBatchBytes = 16u << 10;

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

  // A block, whether or not a batch collects for this word.
  template <class Send>
  void put(FreeBlock* block, PageMap::Word word, std::size_t block_bytes, Send send) noexcept {
    const Key key = Owner::owner_of(word)->key();
    if (collects(word)) return add(block, word, key, send);
    Slot& slot = slots_[index_of(word)];
    flush(slot, send);
    put_before(block, nullptr, key);
    const auto length = static_cast<std::uint32_t>(std::clamp<std::size_t>(kBatchBytes / block_bytes, 1, kBatch));
    slot = {word, block, block, length - 1, length};
    if (slot.room == 0) flush(slot, send);
  }

  template <class Send>
  void flush_all(Send send) noexcept {
    for (Slot& slot : slots_) flush(slot, send);
  }

 private:
  static constexpr PageMap::Word kNone = 1;  // no slab's word, nor what the map has where nothing of ours is

  struct Slot {
    PageMap::Word word = kNone;
    FreeBlock *first = nullptr, *last = nullptr;
    std::uint32_t room = 0, length = 0;  // blocks that are still missing, and that it will have
  };

  // Classes of one owner get slots of their own.
  static unsigned index_of(PageMap::Word word) noexcept {
    return (word / kWordStep + 13 * (word / kHeapAlignment)) % kSlots;
  }

  template <class Send>
  [[gnu::noinline]] static void flush(Slot& slot, Send send) noexcept {
    if (slot.word == kNone) return;
    const Slot sent = slot;
    slot = {};
    send(Owner::owner_of(sent.word), {sent.first, sent.last, sent.length - sent.room});
  }

  std::array<Slot, kSlots> slots_{};
};

}  // namespace loam::heap
