// ThreadHeaps: the registry of all thread heaps, and what happens to a heap when its thread ends.
//   A thread that ends returns its blocks to its slabs and leaves its heap idle. The idle heap still owns the blocks
//   that other threads use. A new thread takes a whole idle heap, that of its processor if there is one (ADR 0022).
//   Until then, a thread that sends a batch to an idle heap tends it: it takes the batch in, so that memory of ended
//   threads returns to the system. In the child of a fork the heaps of other threads are lost: they may have been
//   changing, so no block is taken from them, and blocks that are freed to them stay in their inboxes. An idle heap
//   that another thread was tending is lost, too.
//   Source adoption of whole heaps as in Hoard and snmalloc.
//   H1 a heap is attached to at most one thread; an idle heap is accessed only under lock_.
//   H2 at every moment both lists can be walked, and only the idle heap tended_ changes: for the child of a fork.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/thread_heap.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <mutex>
#include <new>
#include <utility>

namespace loam::heap {

template <SizeClasses Classes, SpanStore Spans, PageSource Pages>
class ThreadHeaps {
 public:
  using Heap = ThreadHeap<Classes, Spans>;

  // A heap for the calling thread; order: the same for all. nullptr: no memory
  static Heap* attach(ServingOrder order) noexcept {
    LOAM_POINT("heap.attaching");
    const std::lock_guard guard(lock_);
    LOAM_POINT("heap.attached");
    if (Heap* const heap = take_idle(platform::cpu_number()); heap != nullptr) {
      // relaxed: the state changes under the lock; read without it, it is a hint.
      heap->state.store(HeapState::attached, std::memory_order_relaxed);
      heap->thread.store(platform::thread_id(), std::memory_order_relaxed);
      return heap;
    }
    void* const memory = Pages::metadata(sizeof(Heap));
    if (memory == nullptr) return nullptr;
    auto* const heap = ::new (memory) Heap(Zeroed{}, order);
    heap->thread.store(platform::thread_id(), std::memory_order_relaxed);
    heap->next_of_all = all_;
    platform::compiler_barrier();  // H2
    all_ = heap;
    return heap;
  }

  static void detach(Heap* heap) noexcept {
    heap->end_loan();
    heap->give_all(send);
    heap->send_all(send);
    LOAM_POINT("heap.leaving");
    const std::lock_guard guard(lock_);
    heap->give_all(send);  // what came in meanwhile; of its own, so that nothing is sent under the lock
    LOAM_POINT("heap.left");
    heap->cpu = platform::cpu_number();
    heap->next_idle = idle_;
    platform::compiler_barrier();  // H2
    idle_ = heap;
    heap->state.store(HeapState::idle, std::memory_order_relaxed);
    heap->thread.store(0, std::memory_order_relaxed);
  }

  // Pushes a batch into the inbox that the word of its blocks' units names.
  static void send(PageMap::Word word, Batch batch) noexcept {
    Heap* const owner = Heap::owner_of(word);
    owner->arrive(word, batch);
    LOAM_POINT("heap.sent");
    if (owner->state.load(std::memory_order_relaxed) == HeapState::idle) [[unlikely]]
      tend(owner);
  }

  // In the child of a fork: `own` is the calling thread's heap, or nullptr.
  static void mend_in_child(const Heap* own) noexcept {
    for (Heap* heap = all_; heap != nullptr; heap = heap->next_of_all)
      if (heap != own && heap->state.load(std::memory_order_relaxed) == HeapState::attached)
        heap->state.store(HeapState::lost, std::memory_order_relaxed);
    if (!lock_.is_orphaned()) return;
    if (Heap* const half_given = std::exchange(tended_, nullptr); half_given != nullptr) {
      half_given->state.store(HeapState::lost, std::memory_order_relaxed);
      for (Heap** at = &idle_; *at != nullptr; at = &(*at)->next_idle)
        if (*at == half_given) {
          *at = half_given->next_idle;
          break;
        }
    }
    lock_.unlock();
  }

  // Takes in what idle heaps were sent.
  static void tend_all() noexcept {
    const std::lock_guard guard(lock_);
    for (Heap* heap = idle_; heap != nullptr; heap = heap->next_idle) give_all_of(heap);
  }

  // visit(heap) for each heap that exists.
  template <class Visit>
  static void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (Heap* heap = all_; heap != nullptr; heap = heap->next_of_all) visit(*heap);
  }

 private:
  static constexpr unsigned kIdleSearched = 16;  // a miss each, while others wait for the lock

  // The heap that was left last on this processor, among those left last; else the one left last of all. nullptr: none
  static Heap* take_idle(unsigned cpu) noexcept {
    Heap** found = &idle_;
    unsigned left = kIdleSearched;
    for (Heap** at = &idle_; *at != nullptr && left != 0; at = &(*at)->next_idle, --left)
      if ((*at)->cpu == cpu) {
        found = at;
        break;
      }
    Heap* const heap = *found;
    if (heap != nullptr) *found = heap->next_idle;
    return heap;
  }

  [[gnu::noinline]] static void tend(Heap* heap) noexcept {
    LOAM_POINT("heap.tending");
    const std::lock_guard guard(lock_);
    if (heap->state.load(std::memory_order_relaxed) == HeapState::idle) give_all_of(heap);
  }

  // Of an idle heap, under the lock.
  static void give_all_of(Heap* heap) noexcept {
    tended_ = heap;
    platform::compiler_barrier();  // H2
    heap->give_all(send);
    platform::compiler_barrier();
    tended_ = nullptr;
  }

  static inline constinit sync::OwnedLock lock_{};
  static inline constinit Heap *all_ = nullptr, *idle_ = nullptr, *tended_ = nullptr;
};

}  // namespace loam::heap
