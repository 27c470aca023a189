// ThreadHeaps: the registry of all thread heaps, and what happens to a heap when its thread ends.
//   A thread that ends returns its blocks to its slabs and leaves its heap idle. The idle heap still owns the blocks
//   that other threads use. A new thread takes a whole idle heap, that of its processor if there is one (ADR 0022).
//   Until then, a thread that sends a batch to an idle heap tends it: it takes the batch in, so that memory of ended
//   threads returns to the system. If another thread tends the heap already, that thread takes this batch in as well.
//   In the child of a fork the heaps of other threads are lost: they may have been changing, so no block is taken out of
//   their lists. Blocks that are freed to them stay in their inboxes until a thread claims them (claimed.hpp). An idle
//   heap that another thread was tending is lost, too.
//   A thread may end without handing its heap over, because the system calls no destructor for it. Before a new heap is
//   made, some heaps that are attached are looked at, in turn: one whose thread is gone serves the new thread.
//   Source adoption of whole heaps as in Hoard and snmalloc.
//   H1 a heap is touched only by the thread that holds its lock `use`: while it is attached, its thread holds it.
//   H2 at every moment both lists can be walked, and only heaps whose `use` is held change: for the child of a fork.
//   H3 an idle heap has no batch that was sent to it as an idle heap, unless a thread tends it, or one gave up after
//   kRounds rounds.
//   Orders (tending.A): who sends pushes a batch and then looks at the owner's state, both seq_cst; who leaves stores the
//   state, seq_cst, full_fence(), then looks into the inboxes. Who tends has full_fence() before it tries the lock, and
//   between its unlock and its look into the inboxes. So the one sees the state, or gets the lock, or the other sees the
//   batch.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/thread_heap.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/machine_fence.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <atomic>
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
    heap->use.take_over();
    sign(*heap);
    heap->next_of_all = all();
    all_.store(heap, std::memory_order_release);  // all.A (publishes), and H2
    return heap;
  }

  static void detach(Heap* heap) noexcept {
    heap->end_loan();
    heap->give_all(send);
    heap->send_all(send);
    LOAM_POINT("heap.leaving");
    {
      const std::lock_guard guard(lock_);
      LOAM_POINT("heap.left");
      heap->cpu = platform::cpu_number();
      heap->next_idle = idle_;
      platform::compiler_barrier();  // H2
      idle_ = heap;
      heap->state.store(HeapState::idle, std::memory_order_seq_cst);  // tending.A
      heap->thread.store(0, std::memory_order_relaxed);
      heap->use.unlock();
    }
    platform::full_fence();                 // tending.A
    if (heap->has_arrivals()) [[unlikely]]  // what came in meanwhile
      tend(heap);
  }

  // Pushes a batch into the inbox that the word of its blocks' units names.
  static void send(PageMap::Word word, Batch batch) noexcept {
    Heap* const owner = Heap::owner_of(word);
    owner->arrive(word, batch);
    LOAM_POINT("heap.sent");
    if (owner->state.load(std::memory_order_seq_cst) == HeapState::idle) [[unlikely]]  // tending.A
      tend(owner);
  }

  // In the child of a fork: `own` is the calling thread's heap, or nullptr.
  static void mend_in_child(Heap* own) noexcept {
    if (own != nullptr) sign(*own);
    for (Heap* heap = all(); heap != nullptr; heap = heap->next_of_all)
      if (heap->use.is_orphaned()) heap->state.store(HeapState::lost, std::memory_order_relaxed);
    for (Heap** at = &idle_; *at != nullptr;) {
      // relaxed, here and above: one thread.
      if ((*at)->state.load(std::memory_order_relaxed) == HeapState::lost)
        *at = (*at)->next_idle;
      else
        at = &(*at)->next_idle;
    }
    if (lock_.is_orphaned()) lock_.unlock();
  }

  // Takes in what idle heaps were sent.
  static void tend_all() noexcept {
    const std::lock_guard guard(lock_);
    for (Heap* heap = idle_; heap != nullptr; heap = heap->next_idle) tend(heap);
  }

  // For a thread that would need new memory: a heap whose thread does not look into its inbox of the class, among the
  // next few; nullptr: none of these. The next look begins with the heap that was found.
  [[gnu::noinline]] static Heap* neglectful(unsigned c, Heap& asking) noexcept {
    bool began_again = false;
    for (unsigned left = kNeglectfulSearched; left != 0; --left) {
      if (asking.looked_at == nullptr) {
        if (std::exchange(began_again, true)) break;  // all were seen
        // acquire: pairs with all.A: who finds a heap finds it complete. Heaps stay for ever.
        asking.looked_at = all_.load(std::memory_order_acquire);
      }
      Heap* const heap = asking.looked_at;
      if (heap != &asking && heap->neglects(c)) return heap;
      asking.looked_at = heap->next_of_all;
    }
    return nullptr;
  }

  // visit(heap) for each heap that exists.
  template <class Visit>
  static void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (Heap* heap = all(); heap != nullptr; heap = heap->next_of_all) visit(*heap);
  }

 private:
  static constexpr unsigned kIdleSearched = 16;       // a miss each, while others wait for the lock
  static constexpr unsigned kAttachedSearched = 8;    // a system call each
  static constexpr unsigned kNeglectfulSearched = 8;  // a miss each, for a slab or more of them
  static constexpr unsigned kRounds = 8;              // that a thread tends a heap, while others send to it

  // The heap that was left last on this processor, among those left last; else the one left last of all. Those that
  // somebody tends are passed by. It is the caller's now. nullptr: none
  static Heap* take_idle(unsigned cpu) noexcept {
    Heap* const near = take_first_idle([cpu](const Heap& heap) { return heap.cpu == cpu; });
    return near != nullptr ? near : take_first_idle([](const Heap&) { return true; });
  }
  template <class Suits>
  static Heap* take_first_idle(Suits suits) noexcept {
    unsigned left = kIdleSearched;
    for (Heap** at = &idle_; *at != nullptr && left != 0; at = &(*at)->next_idle, --left) {
      Heap* const heap = *at;
      if (!suits(*heap) || !heap->use.try_lock()) continue;
      *at = heap->next_idle;
      return heap;
    }
    return nullptr;
  }

  static Heap* all() noexcept { return all_.load(std::memory_order_relaxed); }  // under the lock, or in a child

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
      if (looked_at_ == nullptr) looked_at_ = all();
      if (looked_at_ == nullptr) return nullptr;
      Heap& heap = *std::exchange(looked_at_, looked_at_->next_of_all);
      if (heap.state.load(std::memory_order_relaxed) != HeapState::attached || heap.process != process) continue;
      const unsigned thread = heap.thread.load(std::memory_order_relaxed);
      // The kernel's answer comes after all that the dead thread has stored.
      if (thread != caller && platform::thread_exists(thread)) continue;
      heap.use.take_over();
      heap.forget_loan();
      return &heap;
    }
    return nullptr;
  }

  // Takes in what an idle heap was sent, unless another thread does: that one looks again when it is done (H3). A thread
  // that others keep busy gives up after some rounds: whoever sends next tends.
  [[gnu::noinline]] static void tend(Heap* heap) noexcept {
    LOAM_POINT("heap.tending");
    platform::full_fence();  // tending.A
    for (unsigned round = 0; round < kRounds && heap->use.try_lock(); ++round) {
      heap->give_arrivals(send);
      heap->use.unlock();
      platform::full_fence();  // tending.A
      if (!heap->has_arrivals()) return;
    }
  }

  static inline constinit sync::ApartOwnedLock lock_{};
  static inline constinit std::atomic<Heap*> all_{nullptr};  // written under the lock
  static inline constinit Heap* idle_ = nullptr;
  static inline constinit Heap* looked_at_ = nullptr;  // the heap at which find_abandoned() begins; nullptr: all_
};

}  // namespace loam::heap
