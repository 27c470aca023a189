// LockFreeQueue: first in, first out, lock-free: some thread always makes progress, even if others are stopped.
//   Source   Michael, Scott: "Simple, fast, and practical non-blocking and blocking concurrent queue algorithms", PODC
//            1996, the queue of their compare-and-swaps.
//   How      The first node is a dummy. An enqueue links its node behind the last one, then moves the tail; if another
//            thread was faster, it moves the tail for that thread first. A dequeue moves the head, and hands the node
//            that it leaves to the reclaimer.
//   Reclaimer  when such a node may be freed (by_hazards.hpp, by_epochs.hpp):
//     Reclaimer::Section section;        while it lives, the calling thread reads nodes
//     section.protect(place, node)       keeps a node that is still linked after this; place: 0 or 1
//     section.retire(node)               no new reader can find it
//   Guarantees  linearizable; lock-free, as far as the allocator is.   Cost  alone: an enqueue two compare-and-swaps, a
//            dequeue one.   When not: many threads: each failed compare-and-swap has moved the line in vain; combining
//            moves it once per turn.
//   Invariants  LQ1 from the head, links lead to the tail, and on to the last node.   LQ2 the tail is never behind the
//            head: a dequeue that finds them equal moves the tail first.
//   Orders
//     lfq.A  next: release by the enqueue, acquire by whoever follows it.  Without it a dequeue could read the value of a
//            node as it was before.
//     lfq.B  head_, tail_: release when moved, acquire when read. So a reader sees the nodes behind them as the thread
//            that moved them saw them (lfq.A). And a thread that reads the head, then the tail, sees the tail at least
//            as far as it was when the head moved (LQ2).
//   Caveat constructor, destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/cache_line.hpp"
#include "structures/plain_access.hpp"
#include "structures/verdict.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace loam::structures {

template <class Reclaimer>
class LockFreeQueue {
 public:
  using Value = std::int64_t;

  struct Node {
    Value value;
    std::atomic<Node*> next;
  };
  static_assert(sizeof(Node) == 16, "the element of the studies");

  LockFreeQueue() : LockFreeQueue(make_dummy()) {}
  LockFreeQueue(const LockFreeQueue&) = delete;
  LockFreeQueue& operator=(const LockFreeQueue&) = delete;
  ~LockFreeQueue() {
    for (Node *node = head_.load(std::memory_order_relaxed), *next; node != nullptr; node = next) {  // relaxed: alone
      next = node->next.load(std::memory_order_relaxed);
      std::free(node);
    }
  }

  void enqueue(Value value) {
    Node* const node = make(value);
    typename Reclaimer::Section section;
    for (;;) {
      Node* const last = tail_.load(std::memory_order_acquire);  // lfq.B
      section.protect(0, last);
      LOAM_POINT("lock-free queue: the tail was read");
      if (tail_.load(std::memory_order_acquire) != last) continue;
      LOAM_POINT("lock-free queue: the tail is protected");
      Node* next = last->next.load(std::memory_order_acquire);  // lfq.A
      if (next != nullptr) {
        move(tail_, last, next);
        continue;
      }
      // relaxed where it fails: nothing of the other node is read.
      if (last->next.compare_exchange_strong(next, node, std::memory_order_release, std::memory_order_relaxed)) {
        LOAM_POINT("lock-free queue: between link and tail");
        move(tail_, last, node);
        return;
      }
    }
  }

  // False, and `value` is not changed, if the queue is empty.
  bool dequeue(Value& value) {
    typename Reclaimer::Section section;
    for (;;) {
      Node* const dummy = head_.load(std::memory_order_acquire);  // lfq.B
      section.protect(0, dummy);
      LOAM_POINT("lock-free queue: the head was read");
      if (head_.load(std::memory_order_acquire) != dummy) continue;
      LOAM_POINT("lock-free queue: the head is protected");
      Node* const last = tail_.load(std::memory_order_acquire);         // lfq.B
      Node* const first = dummy->next.load(std::memory_order_acquire);  // lfq.A
      if (first == nullptr) return false;
      section.protect(1, first);
      // Linked as long as the head has not passed it.
      if (head_.load(std::memory_order_acquire) != dummy) continue;
      if (dummy == last) {
        move(tail_, last, first);  // LQ2
        continue;
      }
      const Value found = first->value;
      LOAM_POINT("lock-free queue: before the head moves");
      if (!move(head_, dummy, first)) continue;
      value = found;
      section.retire(dummy);
      return true;
    }
  }

  Verdict verify() const {
    Verdict verdict;
    const Node* const tail = tail_.load(std::memory_order_relaxed);  // relaxed, all: alone
    const Node* node = head_.load(std::memory_order_relaxed);
    bool passed_tail = node == tail;
    while (const Node* const next = node->next.load(std::memory_order_relaxed)) {
      node = next;
      passed_tail |= node == tail;
      ++verdict.elements;
    }
    if (!passed_tail) verdict.broken = "LQ1: links lead to the tail";
    return verdict;
  }

  template <class Visit>  // visit(value), the first first
  void for_each(Visit&& visit) const {
    // relaxed: alone
    for (const Node* node = head_.load(std::memory_order_relaxed)->next.load(std::memory_order_relaxed);
         node != nullptr; node = node->next.load(std::memory_order_relaxed))
      visit(node->value);
  }

 private:
  explicit LockFreeQueue(Node* dummy) : head_(dummy), tail_(dummy) {}

  // As that of Queue not counted: each dequeue destroys one node, and leaves the next one as the dummy.
  static Node* make_dummy() {
    void* const block = std::malloc(sizeof(Node));
    if (block == nullptr) throw std::bad_alloc();
    return ::new (block) Node{0, nullptr};
  }
  static Node* make(Value value) { return PlainAccess().create<Node>(value, static_cast<Node*>(nullptr)); }

  static bool move(std::atomic<Node*>& end, Node* from, Node* to) noexcept {
    // relaxed where it fails: what is there is read anew.
    return end.compare_exchange_strong(from, to, std::memory_order_release, std::memory_order_relaxed);  // lfq.B
  }

  alignas(platform::kApartBytes) std::atomic<Node*> head_;
  alignas(platform::kApartBytes) std::atomic<Node*> tail_;
};

}  // namespace loam::structures
