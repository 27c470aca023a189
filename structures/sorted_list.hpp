// SortedList: a set of keys in a singly linked list, ascending, between two sentinels.
//   Source Harmanci, Felber et al., the integer-set benchmark of the STM literature.   Cost: O(n) per operation.
//   Caveat: constructor, destructor, verify() and for_each_*() touch memory plainly; no other thread may be inside.
//   Not thread-safe by itself: whoever calls insert() and the like brings an access policy that makes it so.
#pragma once

#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace loam::structures {

class SortedList {
 public:
  using Key = std::int64_t;  // the two extreme values are the sentinels'

  struct Node {
    Key key;
    Node* next;
  };
  static_assert(sizeof(Node) == 16, "the study's list node");

  SortedList()
      : tail_(make_sentinel(std::numeric_limits<Key>::max(), nullptr)),
        head_(make_sentinel(std::numeric_limits<Key>::min(), tail_)) {}
  SortedList(const SortedList&) = delete;
  SortedList& operator=(const SortedList&) = delete;
  ~SortedList() {
    for (Node *node = head_, *next; node != nullptr; node = next) {
      next = node->next;
      std::free(node);
    }
  }

  template <class Access>
  bool contains(Access& access, Key key) const {
    return find(access, key).key == key;
  }

  // False, and nothing is written, if the key is present.
  template <class Access>
  bool insert(Access& access, Key key) {
    const auto place = find(access, key);
    if (place.key == key) return false;
    access.write(place.previous->next, access.template create<Node>(key, place.node));
    return true;
  }

  // False, and nothing is written, if the key is absent.
  template <class Access>
  bool remove(Access& access, Key key) {
    const auto place = find(access, key);
    if (place.key != key) return false;
    access.write(place.previous->next, access.read(place.node->next));
    access.destroy(place.node);
    return true;
  }

  // L1 keys ascend strictly from head to tail (hence no cycle and no key twice).   L2 the last node is the tail.
  Verdict verify() const {
    Verdict verdict;
    const Node* node = head_;
    for (; node->next != nullptr; node = node->next) {
      if (node->key >= node->next->key) return {verdict.elements, "L1: keys ascend strictly"};
      if (node != head_) ++verdict.elements;
    }
    if (node != tail_) verdict.broken = "L2: the last node is the tail";
    return verdict;
  }

  template <class Visit>  // visit(key), ascending
  void for_each_key(Visit&& visit) const {
    for (const Node* node = head_->next; node != tail_; node = node->next) visit(node->key);
  }

  template <class Visit>  // visit(address, bytes) for the blocks that are no nodes
  void for_each_fixed_block(Visit&& visit) const {
    visit(head_, sizeof(Node));
    visit(tail_, sizeof(Node));
  }

 private:
  struct Place {
    Node *previous, *node;  // node: the first whose key is not smaller
    Key key;                // node's
  };

  template <class Access>
  Place find(Access& access, Key key) const {
    Node* previous = head_;
    Node* node = access.read(previous->next);
    for (;;) {
      const Key at = access.read(node->key);
      if (at >= key) return {previous, node, at};
      previous = node;
      node = access.read(node->next);
    }
  }

  static Node* make_sentinel(Key key, Node* next) {
    void* const block = std::malloc(sizeof(Node));
    if (block == nullptr) throw std::bad_alloc();
    return ::new (block) Node{key, next};
  }

  Node* const tail_;
  Node* const head_;
};

}  // namespace loam::structures
