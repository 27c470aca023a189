// Remote free: blocks that a thread frees and another thread's heap owns.
//   Source batches to the owner's queue, as in snmalloc (Lietar et al., ISMM 2019); ours are of one class, and a batch
//   is spliced by its last block, so that the owner never walks it.
//   Outbox: the freer collects by owner and class in 64 slots; a batch is 32 blocks or 16 KiB.
//   Inbox: a stack of batches, pushed by anyone, emptied by the owner in one exchange.
//   Cost: a free is some stores, a batch one compare-and-swap.
//   When not: a sender that stops keeps at most 31 blocks a slot until it ends.
//   R1 blocks of a batch are of one owner and class, linked with the owner's key, and count as out in their slab.
//   R2 in a sent batch the first block's mark holds the next batch and the length, the second block's the last block.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/free_block.hpp"

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

// Send: send(owner, batch), which pushes the batch into the owner's inbox.
template <class Owner>
class Outbox {
 public:
  static constexpr unsigned kBatch = 32;
  static constexpr std::size_t kBatchBytes = 16u << 10;

  template <class Send>
  void put(Owner* owner, unsigned size_class, std::size_t block_bytes, FreeBlock* block, Send send) noexcept {
    const Key key = owner->key();
    Slot& slot = slots_[(key / alignof(Owner) * kClassSpread + size_class) % kSlots];
    if (slot.owner != owner || slot.size_class != size_class) [[unlikely]] {
      flush(slot, send);
      slot.owner = owner;
      slot.size_class = size_class;
    }
    put_before(block, slot.batch.first, key);
    slot.batch.first = block;
    if (slot.batch.count++ == 0) slot.batch.last = block;
    if (slot.batch.count == kBatch || slot.batch.count * block_bytes >= kBatchBytes) flush(slot, send);
  }

  template <class Send>
  void flush_all(Send send) noexcept {
    for (Slot& slot : slots_) flush(slot, send);
  }

 private:
  static constexpr unsigned kSlots = 64, kClassSpread = 13;

  struct Slot {
    Owner* owner;
    Batch batch;
    std::uint32_t size_class;
  };

  template <class Send>
  static void flush(Slot& slot, Send send) noexcept {
    if (slot.batch.count == 0) return;
    const Batch batch = slot.batch;
    slot.batch = {};
    send(slot.owner, batch);
  }

  std::array<Slot, kSlots> slots_{};
};

}  // namespace loam::heap
