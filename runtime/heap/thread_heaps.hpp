// ThreadHeaps: the registry of all thread heaps, and what happens to a heap when its thread ends.
//   A thread that ends returns its blocks to its slabs and leaves its heap idle. The idle heap still owns the blocks
//   that other threads use. A new thread takes a whole idle heap, that of its processor if there is one (ADR 0022).
//   Until then, a thread that sends a batch to an idle heap tends it: it takes the batch in, so that memory of ended
//   threads returns to the system. In the child of a fork the heaps of other threads are lost: they may have been
//   changing, so no block is taken from them, and blocks that are freed to them stay in their inboxes. An idle heap
//   that another thread was tending is lost, too.
//   A thread may end without handing its heap over, because the system calls no destructor for it. Before a new heap is
//   made, some heaps that are attached are looked at, in turn: one whose thread is gone serves the new thread.
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
    Heap* heap = take_idle(platform::cpu_number());
    if (heap == nullptr) heap = find_abandoned();
    if (heap != nullptr) {
      // relaxed: the state changes under the lock; read without it, it is a hint.
      heap->state.store(HeapState::attached, std::memory_order_relaxed);
      sign(*heap);
      return heap;
    }
    void* const memory = Pages::metadata(sizeof(Heap));
    if (memory == nullptr) return nullptr;
    heap = ::new (memory) Heap(Zeroed{}, order);
    sign(*heap);
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
  static void mend_in_child(Heap* own) noexcept {
    if (own != nullptr) sign(*own);
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
  static constexpr unsigned kIdleSearched = 16;     // a miss each, while others wait for the lock
  static constexpr unsigned kAttachedSearched = 8;  // a system call each

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

  static void sign(Heap& heap) noexcept {
    heap.process = platform::process_id();
    heap.thread.store(platform::thread_id(), std::memory_order_relaxed);
  }

  // Under the lock: a heap that is attached and whose thread has ended, among the next few; nullptr: none of these. Its
  // blocks stay in its lists. A heap that was attached in another process is passed by, because nobody can say whether
  // its thread goes on as one of this process (a child made by a system call, without our handler).
  static Heap* find_abandoned() noexcept {
    const unsigned process = platform::process_id(), caller = platform::thread_id();
    for (unsigned left = kAttachedSearched; left != 0; --left) {
      if (looked_at_ == nullptr) looked_at_ = all_;
      if (looked_at_ == nullptr) return nullptr;
      Heap& heap = *std::exchange(looked_at_, looked_at_->next_of_all);
      if (heap.state.load(std::memory_order_relaxed) != HeapState::attached || heap.process != process) continue;
      const unsigned thread = heap.thread.load(std::memory_order_relaxed);
      // The kernel's answer comes after all that the dead thread has stored.
      if (thread != caller && platform::thread_exists(thread)) continue;
      heap.forget_loan();
      return &heap;
    }
    return nullptr;
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
  static inline constinit Heap* looked_at_ = nullptr;  // the heap at which find_abandoned() begins; nullptr: all_
};

}  // namespace loam::heap
