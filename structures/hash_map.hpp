// HashMap: a map of numbers in a fixed number of chained buckets; a new node goes to the front of its chain.
//   Cost  O(length of the chain); one block per pair.   A node can be made and destroyed inside of the operation, or by the
//   caller outside of it: link() and unlink().
//   When not  the number of pairs is not known in advance: it does not grow.
//   Caveat: constructor, destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/base/check.hpp"
#include "structures/plain_access.hpp"
#include "structures/verdict.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace loam::structures {

class HashMap {
 public:
  using Key = std::int64_t;
  using Value = std::int64_t;

  struct Node {
    Key key;
    Value value;
    Node* next;
  };

  // buckets: a power of two
  explicit HashMap(std::size_t buckets)
      : mask_(buckets - 1), heads_(static_cast<Node**>(std::malloc(buckets * sizeof(Node*)))) {
    LOAM_CHECK(std::has_single_bit(buckets), "{} buckets: no power of two", buckets);
    if (heads_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i <= mask_; ++i) heads_[i] = nullptr;
  }
  HashMap(const HashMap&) = delete;
  HashMap& operator=(const HashMap&) = delete;
  ~HashMap() {
    for (std::size_t i = 0; i <= mask_; ++i)
      for (Node *node = heads_[i], *next; node != nullptr; node = next) {
        next = node->next;
        std::free(node);
      }
    std::free(heads_);
  }

  // False, and `value` is not changed, if the key is absent.
  template <class Access>
  bool find(Access& access, Key key, Value& value) const {
    const Node* const node = node_of(access, key);
    if (node == nullptr) return false;
    value = access.read(node->value);
    return true;
  }

  // False, and nothing is written, if the key is present.
  template <class Access>
  bool insert(Access& access, Key key, Value value) {
    if (node_of(access, key) != nullptr) return false;
    Node*& first = head(key);
    access.write(first, access.template create<Node>(key, value, access.read(first)));
    return true;
  }

  // False, and `value` is not changed, if the key is absent.
  template <class Access>
  bool remove(Access& access, Key key, Value& value) {
    Node* const node = unlink(access, key, value);
    if (node == nullptr) return false;
    access.destroy(node);
    return true;
  }

  // node: made by the caller, who keeps it if the key is present: false
  template <class Access>
  bool link(Access& access, Node* node) {
    if (node_of(access, node->key) != nullptr) return false;
    Node*& first = head(node->key);
    access.write(node->next, access.read(first));
    access.write(first, node);
    return true;
  }

  // The value and the node, which is no longer part of the map, for the caller to destroy; null if the key is absent.
  template <class Access>
  Node* unlink(Access& access, Key key, Value& value) {
    Node** link = &head(key);
    for (Node* node = access.read(*link); node != nullptr; node = access.read(*link)) {
      if (access.read(node->key) == key) {
        value = access.read(node->value);
        access.write(*link, access.read(node->next));
        return node;
      }
      link = &node->next;
    }
    return nullptr;
  }

  // M1 every key is in its own bucket.   M2 no key is twice in a chain (hence no cycle).
  Verdict verify() const {
    Verdict verdict;
    for (std::size_t i = 0; i <= mask_; ++i)
      for (const Node* node = heads_[i]; node != nullptr; node = node->next) {
        if (bucket(node->key) != i) return {verdict.elements, "M1: every key is in its own bucket"};
        for (const Node* earlier = heads_[i]; earlier != node; earlier = earlier->next)
          if (earlier->key == node->key) return {verdict.elements, "M2: no key is twice in a chain"};
        ++verdict.elements;
      }
    return verdict;
  }

  template <class Visit>  // visit(key, value), in no order
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i <= mask_; ++i)
      for (const Node* node = heads_[i]; node != nullptr; node = node->next) visit(node->key, node->value);
  }

 private:
  template <class Access>
  Node* node_of(Access& access, Key key) const {
    Node* node = access.read(head(key));
    while (node != nullptr && access.read(node->key) != key) node = access.read(node->next);
    return node;
  }

  std::size_t bucket(Key key) const noexcept { return base::mix(static_cast<std::uint64_t>(key)) & mask_; }
  Node*& head(Key key) const noexcept { return heads_[bucket(key)]; }

  const std::size_t mask_;
  Node** const heads_;
};

}  // namespace loam::structures
