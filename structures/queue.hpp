// Queue: first in, first out, in a singly linked list whose first node is a dummy.
//   Source   Michael, Scott: "Simple, fast, and practical non-blocking and blocking concurrent queue algorithms", PODC
//            1996, the queue of their two locks.   Cost  O(1): one block made per element, one destroyed.
//   The dummy separates the two ends: a dequeue accesses only one word that an enqueue writes, the link of the last
//   node. So one lock may guard both ends, or two locks one end each; two locks need an access policy that orders this
//   link (ordered_access.hpp).
//   A node can be made and destroyed inside of the operation, or by the caller outside of it: link() and unlink().
//   Caveat: constructor, destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "structures/linked_nodes.hpp"
#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace loam::structures {

class Queue : public LinkedNodes {
 public:
  Queue() : head_(make_dummy()), tail_(head_) {}
  ~Queue() { free_all(head_); }

  template <class Access>
  void enqueue(Access& access, Value value) {
    make_and_link(*this, access, value);
  }

  // False, and `value` is not changed, if the queue is empty.
  template <class Access>
  bool dequeue(Access& access, Value& value) {
    return unlink_and_destroy(*this, access, value);
  }

  // node: made by the caller, its `next` null.
  template <class Access>
  void link(Access& access, Node* node) {
    Node* const last = access.read(tail_);
    access.write(last->next, node);
    access.write(tail_, node);
  }

  // The value of the first element and a node that is no longer part of the queue, for the caller to destroy; null if
  // there is no element.
  template <class Access>
  Node* unlink(Access& access, Value& value) {
    Node* const dummy = access.read(head_);
    Node* const first = access.read(dummy->next);
    if (first == nullptr) return nullptr;
    value = access.read(first->value);
    access.write(head_, first);
    return dummy;
  }

  // Q1 from the dummy, links lead to the tail.   Q2 the tail has no next.
  Verdict verify() const {
    Verdict verdict;
    const Node* node = head_;
    for (; node->next != nullptr; node = node->next) ++verdict.elements;
    if (node != tail_) verdict.broken = "Q1: links lead to the tail";
    return verdict;
  }

  template <class Visit>  // visit(value), the first first
  void for_each(Visit&& visit) const {
    for (const Node* node = head_->next; node != nullptr; node = node->next) visit(node->value);
  }

 private:
  static Node* make_dummy() {
    void* const block = std::malloc(sizeof(Node));
    if (block == nullptr) throw std::bad_alloc();
    return ::new (block) Node{0, nullptr};
  }

  alignas(platform::kApartBytes) Node* head_;
  alignas(platform::kApartBytes) Node* tail_;
};

}  // namespace loam::structures
