// Stack: last in, first out, in a singly linked list.
//   Cost  O(1): one block made per element, one destroyed.   A node can be made and destroyed inside of the operation, or by
//   the caller outside of it: link() and unlink().
//   When not  many threads: all operations change the same word, so no two can run at the same time.
//   Caveat: destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "structures/linked_nodes.hpp"
#include "structures/verdict.hpp"

namespace loam::structures {

class Stack : public LinkedNodes {
 public:
  Stack() = default;
  ~Stack() { free_all(top_); }

  template <class Access>
  void push(Access& access, Value value) {
    make_and_link(*this, access, value);
  }

  // False, and `value` is not changed, if the stack is empty.
  template <class Access>
  bool pop(Access& access, Value& value) {
    return unlink_and_destroy(*this, access, value);
  }

  // node: made by the caller
  template <class Access>
  void link(Access& access, Node* node) {
    access.write(node->next, access.read(top_));
    access.write(top_, node);
  }

  // The value of the newest element and its node, which is no longer part of the stack, for the caller to destroy; null if
  // there is no element.
  template <class Access>
  Node* unlink(Access& access, Value& value) {
    Node* const node = access.read(top_);
    if (node == nullptr) return nullptr;
    value = access.read(node->value);
    access.write(top_, access.read(node->next));
    return node;
  }

  // T1 links lead to an end.
  Verdict verify() const {
    Verdict verdict;
    const Node* behind = top_;  // half as far: whoever goes round meets it
    for (const Node* node = top_; node != nullptr; node = node->next) {
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
    for (const Node* node = top_; node != nullptr; node = node->next) visit(node->value);
  }

 private:
  alignas(platform::kApartBytes) Node* top_ = nullptr;
};

}  // namespace loam::structures
