// LockFreeStack: last in, first out, lock-free: some thread always makes progress, even if others are stopped.
//   Source   Treiber: "Systems programming: coping with parallelism", IBM RJ 5118, 1986.
//   How      A push links its node before the top and swings the top to it; a pop swings the top to the node behind, and
//            hands the node that it took to the reclaimer.
//   Reclaimer  decides when such a node may be freed (by_hazards.hpp, by_epochs.hpp; its interface:
//            lock_free_queue.hpp). So a node is not reused while another thread compares with it (ABA).
//   Guarantees  linearizable; lock-free, as far as the allocator is.   Cost  alone one compare-and-swap each.
//   When not many threads: each failed compare-and-swap has moved the line in vain.
//   Orders
//     lfs.A  top_: release when moved, acquire when read.  Without it a pop could read a node as it was before.
//   Caveat destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/cache_line.hpp"
#include "structures/plain_access.hpp"
#include "structures/verdict.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace loam::structures {

template <class Reclaimer>
class LockFreeStack {
 public:
  using Value = std::int64_t;

  struct Node {
    Value value;
    Node* next;  // written before the node is published
  };
  static_assert(sizeof(Node) == 16, "the element of the studies");

  LockFreeStack() = default;
  LockFreeStack(const LockFreeStack&) = delete;
  LockFreeStack& operator=(const LockFreeStack&) = delete;
  ~LockFreeStack() {
    for (Node *node = top_.load(std::memory_order_relaxed), *next; node != nullptr; node = next) {  // relaxed: alone
      next = node->next;
      std::free(node);
    }
  }

  void push(Value value) {
    // relaxed: nothing of that node is read here.
    Node* top = top_.load(std::memory_order_relaxed);
    Node* const node = PlainAccess().create<Node>(value, top);
    while (!move(top, node)) node->next = top;
  }

  // False, and `value` is not changed, if the stack is empty.
  bool pop(Value& value) {
    typename Reclaimer::Section section;
    for (;;) {
      Node* top = top_.load(std::memory_order_acquire);  // lfs.A
      if (top == nullptr) return false;
      section.protect(0, top);
      LOAM_POINT("lock-free stack: the top was read");
      if (top_.load(std::memory_order_acquire) != top) continue;
      LOAM_POINT("lock-free stack: the top is protected");
      Node* const taken = top;
      if (!move(top, taken->next)) continue;
      value = taken->value;
      section.retire(taken);
      return true;
    }
  }

  // T1 links lead to an end.
  Verdict verify() const {
    Verdict verdict;
    const Node* behind = top_.load(std::memory_order_relaxed);  // relaxed: alone.  half as far as `node`
    for (const Node* node = behind; node != nullptr; node = node->next) {
      ++verdict.elements;
      if (verdict.elements % 2 == 0) behind = behind->next;
      if (node->next != nullptr && node->next == behind) {
        verdict.broken = "T1: links lead to an end";
        break;
      }
    }
    return verdict;
  }

  template <class Visit>  // visit(value), the newest first
  void for_each(Visit&& visit) const {
    // relaxed: alone
    for (const Node* node = top_.load(std::memory_order_relaxed); node != nullptr; node = node->next)
      visit(node->value);
  }

 private:
  // from: what is there, if it is something else
  bool move(Node*& from, Node* to) noexcept {
    // relaxed where it fails: what is there is read anew, or not at all.
    return top_.compare_exchange_strong(from, to, std::memory_order_release, std::memory_order_relaxed);  // lfs.A
  }

  alignas(platform::kApartBytes) std::atomic<Node*> top_{nullptr};
};

}  // namespace loam::structures
