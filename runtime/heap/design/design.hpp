// Design: an allocator put together from factors at run time: a thread's cache in front of heaps of slabs.
//   allocate  the thread's cache of the class; else a batch from the heap that the factor `heaps` names
//   release   into the thread's cache, as far as `return-to` and `cache` let it; else to the heap of the block's slab
//   The choices are branches that every design executes, so two designs differ only by the effects of their factors.
//   When not  absolute speed: each call reads some ten factors, which are fixed in a real allocator.
#pragma once

#include "runtime/heap/design/heaps.hpp"
#include "runtime/heap/design/large.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace loam::heap::design {

// What a thread keeps of each class.
struct Cache {
  FreeBlock* first = nullptr;
  std::uint32_t count = 0, batch = 0;
};

// Of one thread.
struct alignas(platform::kApartBytes) Front {
  Heap* heap = nullptr;
  std::uint64_t refills = 0;  // calls for which the cache did not do
  Front* next = nullptr;      // of those whose threads have ended
  Cache caches[kClassesMax];
};

class Design {
 public:
  static constexpr unsigned kHeapsMax = 1024;

  // Once, before any other call. returns false where the system refuses the memory
  bool start(const Factors& factors, unsigned processors) noexcept {
    factors_ = factors;
    processors_ = processors;
    heap_count_ = factors.is(Heaps::one)         ? 1
                  : factors.is(Heaps::processor) ? std::min(processors, kHeapsMax - 1)
                  : factors.heap_count != 0      ? static_cast<unsigned>(factors.heap_count)
                                                 : std::min(4 * processors, kHeapsMax - 1);
    sizes_.start(factors_, factors.is(Metadata::block) ? 8 : 0);
    if (!store_.start(factors_, processors)) return false;
    heaps_.start(factors_, sizes_, store_);
    table_[0].store(heaps_.global(), std::memory_order_relaxed);  // relaxed: before any other thread
    return heaps_.global() != nullptr;
  }
  const Factors& factors() const noexcept { return factors_; }

  // For a thread that begins; nullptr where there is no memory.
  Front* begin_thread() noexcept {
    Front* front = nullptr;
    threads_lock_.run([&] {
      front = left_;
      if (front != nullptr) left_ = front->next;
    });
    if (front != nullptr) return front;
    void* const room = platform::map_lazy(sizeof(Front), {.huge_pages = false});
    if (room == nullptr) return nullptr;
    front = ::new (room) Front;
    const unsigned number = threads_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number, nothing else
    if (factors_.is(Heaps::thread))
      front->heap = heap_at(1 + number % (kHeapsMax - 1));
    else if (factors_.is(Heaps::arenas))
      front->heap = heap_at(1 + number % heap_count_);
    else
      front->heap = heap_at(1);
    return front->heap == nullptr ? nullptr : front;
  }
  // The caches go home; the heap waits for the next thread.
  void end_thread(Front& front) noexcept {
    for (unsigned index = 0; index < kClassesMax; ++index)
      while (front.caches[index].first != nullptr) give_home(front, pop(front.caches[index]), index);
    threads_lock_.run([&] {
      front.next = left_;
      left_ = &front;
    });
  }

  void* allocate(Front& front, std::size_t bytes) noexcept {
    if (bytes > kSmallMax - 16) [[unlikely]]
      return LargeBlock::allocate(bytes, 64);
    const std::size_t stride = sizes_.stride_of(bytes);
    if (stride > largest_small()) [[unlikely]]
      return LargeBlock::allocate(bytes, 64);
    const unsigned index = Sizes::index_of(stride);
    Cache& cache = front.caches[index];
    if (cache.first == nullptr) [[unlikely]]
      if (!refill(front, cache, index, is_cached(stride))) return nullptr;
    return pop(cache);
  }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return LargeBlock::allocate(bytes, alignment);
  }

  void release(Front& front, void* address) noexcept {
    if (!store_.has(address)) [[unlikely]] {
      LargeBlock::release(address);
      return;
    }
    auto* const block = static_cast<FreeBlock*>(address);
    const unsigned index = class_of(block);
    if (is_cached(Sizes::stride_at(index)) && (factors_.is(ReturnTo::thread) || owner_of(block) == own_heap(front))) {
      Cache& cache = front.caches[index];
      push(cache, block);
      if (cache.count > factors_.cache) flush(front, cache, index);
      return;
    }
    give_home(front, block, index);
  }

  std::size_t usable(const void* address) noexcept {
    if (!store_.has(address)) return LargeBlock::usable(address);
    auto* const block = static_cast<FreeBlock*>(const_cast<void*>(address));
    return Sizes::stride_at(class_of(block)) - (factors_.is(Metadata::block) ? 8 : 0);
  }

  // Around a fork, by the thread that forks.
  void before_fork() noexcept {
    for_each_heap([](Heap& heap) { heap.lock.lock(); });
  }
  void after_fork() noexcept {
    for_each_heap([](Heap& heap) { heap.lock.unlock(); });
  }

  // At quiescence.
  void verify() noexcept {
    for_each_heap([&](Heap& heap) { heaps_.verify(heap); });
  }
  template <class F>
  void for_each_heap(F&& f) noexcept {
    for (auto& entry : table_)
      if (Heap* const heap = entry.load(std::memory_order_acquire)) f(*heap);  // design.A
  }
  Heap* owner_of(FreeBlock* block) noexcept {
    if (factors_.slab == 0) return heap_at(static_cast<unsigned>(word_of(block) >> 32));
    return slab_of(block)->owner.load(std::memory_order_acquire);  // heaps.B
  }
  Slab* slab_of(FreeBlock* block) noexcept {
    return factors_.is(Metadata::block) ? store_.slab_at(word_of(block) >> 1) : store_.slab_of(block);
  }

 private:
  static std::uint64_t word_of(const FreeBlock* block) noexcept {
    return reinterpret_cast<const std::uint64_t*>(block)[-1];
  }
  // At least four blocks of a class in a slab.
  std::size_t largest_small() const noexcept {
    const std::uint64_t slab = factors_.slab_used != 0 ? factors_.slab_used : factors_.slab;
    return slab == 0 ? kSmallMax : std::min<std::size_t>(kSmallMax, slab / 4);
  }
  bool is_cached(std::size_t stride) const noexcept { return factors_.cache != 0 && stride <= factors_.cache_largest; }
  unsigned class_of(FreeBlock* block) noexcept {
    if (factors_.slab == 0) return static_cast<unsigned>(word_of(block) & 0xffffffff) >> 1;
    return Sizes::index_of(slab_of(block)->stride);
  }
  static FreeBlock* pop(Cache& cache) noexcept {
    FreeBlock* const block = cache.first;
    cache.first = block->next;
    --cache.count;
    return block;
  }
  static void push(Cache& cache, FreeBlock* block) noexcept {
    block->next = cache.first;
    cache.first = block;
    ++cache.count;
  }

  // Fills an empty cache; where blocks of the class are not cached, with one block.
  [[gnu::noinline]] bool refill(Front& front, Cache& cache, unsigned index, bool cached) noexcept {
    ++front.refills;
    unsigned count = 1;
    if (cached) {
      const auto most = static_cast<std::uint32_t>(std::min(factors_.batch, factors_.cache));
      if (cache.batch < most) cache.batch = factors_.batch_grows != 0 ? cache.batch + 1 : most;
      count = cache.batch;
    }
    const unsigned processor = this_processor();
    const auto take = [&](Heap& heap) { cache.count = heaps_.take(heap, index, count, processor, &cache.first); };
    if (factors_.is(Guard::atomic)) {
      take(*front.heap);
    } else if (factors_.is(Heaps::contended)) {
      Heap* const heap = lock_any(front);
      take(*heap);
      heap->lock.unlock();
    } else {
      Heap* const heap = own_heap(front);
      if (heap == nullptr) return false;
      heap->lock.run([&] { take(*heap); });
    }
    return cache.first != nullptr;
  }

  Heap* own_heap(Front& front) noexcept {
    return factors_.is(Heaps::processor) ? heap_at(1 + this_processor() % heap_count_) : front.heap;
  }
  // The heap that the thread had last, or the next one that is free, which it has from now on; another one only where all
  // are locked (paper 000, table 1).
  Heap* lock_any(Front& front) noexcept {
    const auto number_at = [&](unsigned i) { return 1 + (front.heap->number - 1 + i) % heap_count_; };
    for (unsigned i = 0; i < heap_count_; ++i) {
      Heap* const heap = table_[number_at(i)].load(std::memory_order_acquire);  // design.A
      if (heap != nullptr && heap->lock.try_lock()) return front.heap = heap;
    }
    for (unsigned i = 0; i < heap_count_; ++i) {
      if (table_[number_at(i)].load(std::memory_order_acquire) != nullptr) continue;  // design.A
      Heap* const heap = heap_at(number_at(i));
      if (heap != nullptr && heap->lock.try_lock()) return front.heap = heap;
    }
    front.heap->lock.lock();
    return front.heap;
  }

  // Half of the cache goes home.
  [[gnu::noinline]] void flush(Front& front, Cache& cache, unsigned index) noexcept {
    while (cache.count > factors_.cache / 2) give_home(front, pop(cache), index);
  }

  [[gnu::noinline]] void give_home(Front& front, FreeBlock* block, unsigned index) noexcept {
    const unsigned processor = this_processor();
    if (factors_.slab == 0) {
      Heap* const heap = owner_of(block);
      heap->lock.run([&] { heaps_.give_loose(*heap, index, block); });
      return;
    }
    Slab* const slab = slab_of(block);
    for (;;) {
      Heap* const owner = slab->owner.load(std::memory_order_acquire);  // heaps.B
      if (factors_.is(Guard::atomic)) {
        if (owner == front.heap) {
          heaps_.give(*owner, *slab, block, processor);
        } else {
          slab->give_from_afar(block);
          // heaps.A (publishes): the block is on the slab's list before the owner is told to look.
          owner->classes[index].mail.store(true, std::memory_order_release);
        }
        return;
      }
      // The slab may move to the global heap until its owner's guard is held.
      bool given = false;
      owner->lock.run([&] {
        given = slab->owner.load(std::memory_order_relaxed) == owner;  // relaxed: the guard orders
        if (given) heaps_.give(*owner, *slab, block, processor);
      });
      if (given) return;
    }
  }

  unsigned this_processor() const noexcept {
    return factors_.is(Heaps::processor) || factors_.is(Pool::processor) ? platform::cpu_number() % processors_ : 0;
  }

  Heap* heap_at(unsigned number) noexcept {
    Heap* heap = table_[number].load(std::memory_order_acquire);  // design.A
    if (heap != nullptr) return heap;
    Heap* const made = heaps_.make(number);
    if (made == nullptr) return nullptr;
    // design.A: release, with the acquire loads: who finds the heap finds it made.
    if (table_[number].compare_exchange_strong(heap, made, std::memory_order_acq_rel)) return made;
    platform::unmap(made, sizeof(Heap));
    return heap;
  }

  Factors factors_;
  Sizes sizes_;
  Store store_;
  HeapSet heaps_;
  unsigned processors_ = 1, heap_count_ = 1;
  std::atomic<unsigned> threads_{0};
  sync::ElidedLock threads_lock_;
  Front* left_ = nullptr;  // with threads_lock_
  std::atomic<Heap*> table_[kHeapsMax]{};
};

}  // namespace loam::heap::design
