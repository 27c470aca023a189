// Heaps: slabs by class, and the threads that take blocks from them. Here the factors guard, order, carve, emptiness
// and purge have their effect.
//   With guard=atomic a heap belongs to one thread, which takes no lock. Other threads put the blocks that they free on
//   the slab's own list and leave a note (mail), so the owner reads only lists that have new blocks.
//   H1 used_bytes and slab_bytes are those of the heap's slabs, at quiescence; where emptiness > 0.
//   Source  the two inequalities of emptiness: Hoard, ASPLOS 2000; public lists and mail: TBB's scalable allocator.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/design/factors.hpp"
#include "runtime/heap/design/sizes.hpp"
#include "runtime/heap/design/slab.hpp"
#include "runtime/heap/design/store.hpp"
#include "runtime/sync/elided_lock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::heap::design {

static_assert(sizeof(Slab) <= kHeaderLeast, "where metadata=slab a slab's record lies in its header");

struct OfClass {
  SlabList giving, others;
  FreeBlock* loose = nullptr;     // where slab=0: the free blocks
  std::atomic<bool> mail{false};  // where guard=atomic: others have freed
};

struct alignas(platform::kApartBytes) Heap {
  sync::ElidedLock lock;
  unsigned number = 0;
  std::byte *at = nullptr, *end = nullptr;  // of its piece of addresses, where heap-bytes > 0
  std::uint64_t used_bytes = 0, slab_bytes = 0;
  std::uint64_t moved = 0;  // slabs that went to the global heap
  Heap* next = nullptr;     // of those whose threads have ended
  OfClass classes[kClassesMax];
};

class HeapSet {
 public:
  static constexpr std::uint64_t kSlabsKept = 2;  // Hoard's K

  void start(const Factors& factors, const Sizes& sizes, Store& store) noexcept {
    factors_ = &factors;
    sizes_ = &sizes;
    store_ = &store;
    global_ = make(0);
  }

  // returns nullptr where the system has no memory
  Heap* make(unsigned number) noexcept {
    void* const room = platform::map_lazy(sizeof(Heap), {.huge_pages = false});
    if (room == nullptr) return nullptr;
    Heap* const heap = ::new (room) Heap;
    heap->number = number;
    const bool elides = factors_->is(Guard::transaction) || factors_->is(Guard::elided);
    heap->lock.elide(elides && platform::has_transactions());
    return heap;
  }
  Heap* global() noexcept { return global_; }

  // A chain of up to `count` blocks, the first one first. With the heap's guard. returns their number
  unsigned take(Heap& heap, unsigned index, unsigned count, unsigned processor, FreeBlock** chain) noexcept {
    unsigned got = 0;
    while (got < count) {
      FreeBlock* const block = take_one(heap, index, processor);
      if (block == nullptr) break;
      *chain = block;
      chain = &block->next;
      ++got;
    }
    *chain = nullptr;
    return got;
  }

  // With the heap's guard, which owns the slab.
  void give(Heap& heap, Slab& slab, FreeBlock* block, unsigned processor) noexcept {
    const bool gave = slab.can_give();
    slab.give(block);
    settle(heap, slab, gave, processor);
  }
  void give_loose(Heap& heap, unsigned index, FreeBlock* block) noexcept {
    block->next = heap.classes[index].loose;
    heap.classes[index].loose = block;
  }

  // For tests and verify(): the walk of one heap, at quiescence.
  void verify(Heap& heap) noexcept {
    std::uint64_t used = 0, slabs = 0;
    for (unsigned index = 0; index < kClassesMax; ++index)
      for (const SlabList* list : {&heap.classes[index].giving, &heap.classes[index].others})
        for (Slab* slab = list->first(); slab != nullptr; slab = slab->next) {
          verify(*slab, list == &heap.classes[index].giving);
          LOAM_CHECK(slab->owner.load(std::memory_order_relaxed) == &heap, "U2: slab {} is another heap's",
                     slab->place);
          used += std::uint64_t{slab->used} * slab->stride;
          slabs += store_->unit();
        }
    LOAM_CHECK(slabs == heap.slab_bytes && used == heap.used_bytes, "H1: {} of {} bytes counted, {} of {} found",
               heap.used_bytes, heap.slab_bytes, used, slabs);
  }

 private:
  static void verify(const Slab& slab, bool gives) noexcept {
    std::uint32_t free = 0, remote = 0;
    for (const FreeBlock* block = slab.free; block != nullptr; block = block->next) ++free;
    // relaxed: at quiescence
    for (const FreeBlock* block = slab.remote.load(std::memory_order_relaxed); block != nullptr; block = block->next)
      ++remote;
    LOAM_CHECK(slab.used + free == slab.carved && remote <= slab.used, "U1: used={} free={} remote={} carved={}",
               slab.used, free, remote, slab.carved);
    LOAM_CHECK(slab.can_give() == gives, "U2: slab {} is in the wrong list", slab.place);
  }

  FreeBlock* take_one(Heap& heap, unsigned index, unsigned processor) noexcept {
    if (factors_->slab == 0) return take_loose(heap, index);
    Slab* slab = choose(heap, index);
    if (slab == nullptr && (slab = fetch(heap, index, processor)) == nullptr) return nullptr;
    FreeBlock* const block = slab->take(factors_->is(Carve::down));
    heap.used_bytes += slab->stride;
    if (!slab->can_give()) {
      heap.classes[index].giving.remove(slab);
      heap.classes[index].others.put(slab);
    }
    if (factors_->is(Metadata::block)) word_of(block) = std::uint64_t{slab->place} << 1;
    return block;
  }

  // The slab that serves next; nullptr: none has a block.
  Slab* choose(Heap& heap, unsigned index) noexcept {
    OfClass& of = heap.classes[index];
    if (of.giving.first() == nullptr && of.mail.load(std::memory_order_relaxed)) read_mail(heap, of);
    if (factors_->is(Order::lowest))
      return of.giving.least([](const Slab& a, const Slab& b) { return a.place < b.place; });
    if (factors_->is(Order::fullest))
      return of.giving.least([](const Slab& a, const Slab& b) { return a.used > b.used; });
    return of.giving.first();
  }

  void read_mail(Heap& heap, OfClass& of) noexcept {
    // acquire and release: what comes after this is noted again (heaps.A, with the store in Design::give_home).
    of.mail.exchange(false, std::memory_order_acq_rel);
    for (Slab *slab = of.others.first(), *following; slab != nullptr; slab = following) {
      following = slab->next;
      const std::uint32_t before = slab->used;
      slab->collect();
      heap.used_bytes -= std::uint64_t{before - slab->used} * slab->stride;
      if (!slab->can_give()) continue;
      of.others.remove(slab);
      of.giving.put(slab);
    }
  }

  // A slab for the class: of the global heap, of the pool, or new.
  Slab* fetch(Heap& heap, unsigned index, unsigned processor) noexcept {
    if (factors_->emptiness != 0 && &heap != global_)
      if (Slab* const slab = fetch_global(heap, index)) return slab;
    Slab* slab = store_->take(processor);
    if (slab == nullptr) {
      std::byte* const at = cut(heap, store_->unit());
      if (at == nullptr) return nullptr;
      slab = store_->new_slab(at);
    }
    prepare(*slab, Sizes::stride_at(index));
    add(heap, *slab, index);
    return slab;
  }
  Slab* fetch_global(Heap& heap, unsigned index) noexcept {
    Slab* slab = nullptr;
    global_->lock.run([&] {
      slab = global_->classes[index].giving.first();
      if (slab == nullptr) return;
      // Both with the global guard: who frees a block of it meanwhile must not find it owned by a heap that has it no more.
      remove(*global_, *slab, index);
      add(heap, *slab, index);
    });
    return slab;
  }

  void prepare(Slab& slab, std::size_t stride) noexcept {
    const std::size_t whole = factors_->slab_used != 0 ? factors_->slab_used : store_->unit();
    const std::size_t front = factors_->is(Metadata::slab) ? factors_->header : factors_->is(Metadata::block) ? 16 : 0;
    const std::size_t room = whole - front + (factors_->is(Metadata::block) ? 8 : 0);
    slab.stride = static_cast<std::uint32_t>(stride);
    slab.capacity = static_cast<std::uint32_t>(room / stride);
    slab.first = store_->start_of(slab) + front;
    if (factors_->is(Carve::down)) slab.first += (room - slab.capacity * stride) & ~std::size_t{15};
    slab.carved = slab.used = 0;
    slab.free = nullptr;
  }

  // A block has come back; `gave`: the slab had one to give before.
  void settle(Heap& heap, Slab& slab, bool gave, unsigned processor) noexcept {
    const unsigned index = Sizes::index_of(slab.stride);
    heap.used_bytes -= slab.stride;
    if (!gave) {
      heap.classes[index].others.remove(&slab);
      heap.classes[index].giving.put(&slab);
    }
    if (slab.used == 0 && goes_when_empty(heap, index)) {
      remove(heap, slab, index);
      // relaxed: no block of it is used, so nobody asks
      slab.owner.store(nullptr, std::memory_order_relaxed);
      store_->put(&slab, processor);
      return;
    }
    if (factors_->emptiness != 0 && &heap != global_ && is_too_empty(heap)) move_emptiest(heap, index);
  }
  // Where emptiness counts a heap keeps its empty slabs until it has too many; else it keeps one of a class.
  bool goes_when_empty(const Heap& heap, unsigned index) const noexcept {
    if (&heap == global_) return true;
    return factors_->emptiness == 0 && heap.classes[index].giving.first()->next != nullptr;
  }
  bool is_too_empty(const Heap& heap) const noexcept {
    return heap.used_bytes + kSlabsKept * store_->unit() < heap.slab_bytes &&
           heap.used_bytes * 100 < heap.slab_bytes * (100 - factors_->emptiness);
  }
  void move_emptiest(Heap& heap, unsigned index) noexcept {
    Slab* const slab = heap.classes[index].giving.least([](const Slab& a, const Slab& b) { return a.used < b.used; });
    if (slab == nullptr) return;
    remove(heap, *slab, index);
    ++heap.moved;
    global_->lock.run([&] { add(*global_, *slab, index); });
  }

  void add(Heap& heap, Slab& slab, unsigned index) noexcept {
    heap.classes[index].giving.put(&slab);
    heap.slab_bytes += store_->unit();
    heap.used_bytes += std::uint64_t{slab.used} * slab.stride;
    // heaps.B: release, with the acquire in Design::give_home(): who finds the owner finds its guard.
    slab.owner.store(&heap, std::memory_order_release);
  }
  void remove(Heap& heap, Slab& slab, unsigned index) noexcept {
    heap.classes[index].giving.remove(&slab);
    heap.slab_bytes -= store_->unit();
    heap.used_bytes -= std::uint64_t{slab.used} * slab.stride;
  }

  // Addresses of the heap's own piece, or of all.
  std::byte* cut(Heap& heap, std::size_t bytes) noexcept {
    if (factors_->heap_bytes == 0) return store_->carve(bytes);
    if (static_cast<std::size_t>(heap.end - heap.at) < bytes) {
      heap.at = store_->carve(factors_->heap_bytes);
      if (heap.at == nullptr) {
        heap.end = nullptr;
        return nullptr;
      }
      const bool first = heap.number == 1 && heap.end == nullptr;
      heap.end = heap.at + factors_->heap_bytes;
      if (first) heap.at += factors_->first_heap;
    }
    std::byte* const at = heap.at;
    heap.at += bytes;
    return at;
  }
  FreeBlock* take_loose(Heap& heap, unsigned index) noexcept {
    FreeBlock* block = heap.classes[index].loose;
    if (block != nullptr) {
      heap.classes[index].loose = block->next;
      return block;
    }
    std::byte* const at = cut(heap, Sizes::stride_at(index));
    if (at == nullptr) return nullptr;
    block = reinterpret_cast<FreeBlock*>(at + 16);
    word_of(block) = std::uint64_t{heap.number} << 32 | index << 1 | 1;
    return block;
  }
  // In front of each block, where metadata=block.
  static std::uint64_t& word_of(FreeBlock* block) noexcept { return reinterpret_cast<std::uint64_t*>(block)[-1]; }

  const Factors* factors_ = nullptr;
  const Sizes* sizes_ = nullptr;
  Store* store_ = nullptr;
  Heap* global_ = nullptr;
};

}  // namespace loam::heap::design
