// Slab: a run of blocks of one class, and the ways to find it from a block.
//   U1 used + free + remote + (capacity - carved) = capacity, at quiescence.
//   U2 a heap has two lists for each class: slabs with a free block, and the others. A slab is in one of them. A slab
//      whose only free blocks were freed by other threads is among the others until the heap checks it.
#pragma once

#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::heap::design {

struct Heap;

struct FreeBlock {
  FreeBlock* next;
};

struct alignas(64) Slab {
  // Changed with the guard of the owner's heap.
  FreeBlock* free = nullptr;
  std::byte* first = nullptr;  // block 0
  std::uint32_t stride = 0;
  std::uint32_t capacity = 0, carved = 0, used = 0;
  std::uint32_t place = 0;                  // in the table of slabs
  Slab *next = nullptr, *before = nullptr;  // in a list of its heap

  // Read by everybody. nullptr: in the pool.
  alignas(64) std::atomic<Heap*> owner{nullptr};
  std::atomic<FreeBlock*> remote{nullptr};  // what other threads have freed, where guard=atomic
  std::atomic<std::uint32_t> below{0};      // the next one of the pool's stack, less one: 0 is none

  bool can_give() const noexcept { return free != nullptr || carved < capacity; }

  FreeBlock* take(bool downwards) noexcept {
    ++used;
    if (FreeBlock* const block = free) {
      free = block->next;
      return block;
    }
    const std::size_t index = downwards ? capacity - 1 - carved : carved;
    ++carved;
    return reinterpret_cast<FreeBlock*>(first + index * stride);
  }
  void give(FreeBlock* block) noexcept {
    block->next = free;
    free = block;
    --used;
  }

  void give_from_afar(FreeBlock* block) noexcept {
    FreeBlock* head = remote.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    do {
      block->next = head;
      // slab.A: release, with the acquire of collect(): the owner finds the link that was written here.
    } while (!remote.compare_exchange_weak(head, block, std::memory_order_release, std::memory_order_relaxed));
  }
  // What others have freed becomes free. By the owner.
  void collect() noexcept {
    FreeBlock* block = remote.exchange(nullptr, std::memory_order_acquire);  // slab.A
    while (block != nullptr) {
      FreeBlock* const following = block->next;
      give(block);
      block = following;
    }
  }
};

// The slabs of a heap that have a block to give, or those that have none.
class SlabList {
 public:
  Slab* first() const noexcept { return first_; }
  void put(Slab* slab) noexcept {
    slab->before = nullptr;
    slab->next = first_;
    if (first_ != nullptr) first_->before = slab;
    first_ = slab;
  }
  void remove(Slab* slab) noexcept {
    (slab->before != nullptr ? slab->before->next : first_) = slab->next;
    if (slab->next != nullptr) slab->next->before = slab->before;
    slab->next = slab->before = nullptr;
  }
  // The least by `before(a, b)`; nullptr of an empty list.
  template <class Before>
  Slab* least(Before before) const noexcept {
    Slab* found = first_;
    for (Slab* slab = first_; slab != nullptr; slab = slab->next)
      if (before(*slab, *found)) found = slab;
    return found;
  }

 private:
  Slab* first_ = nullptr;
};

}  // namespace loam::heap::design
