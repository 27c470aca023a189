// HashSet: a set of keys in 2^17 chained buckets; a new node goes to the front of its chain.
//   Multiplicative spreads keys with an odd 32-bit factor, so dense keys below 2^17 share no bucket.
//   Identity packs dense keys into neighbouring bucket heads: conflicts become many times denser.
//   Caveat: constructor, destructor, verify() and for_each_*() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/verdict.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace loam::structures {

struct Multiplicative {
  static constexpr std::uint32_t of(std::uint32_t key) noexcept { return key * 2654435761u; }
};

struct Identity {
  static constexpr std::uint32_t of(std::uint32_t key) noexcept { return key; }
};

template <class Hash = Multiplicative>
class HashSet {
 public:
  using Key = std::int64_t;

  struct Node {
    Key key;
    Node* next;
  };
  static_assert(sizeof(Node) == 16, "the study's hash node");

  static constexpr std::size_t kBuckets = 131072;
  static_assert(std::has_single_bit(kBuckets), "the bucket index is a mask");

  HashSet() : heads_(static_cast<Node**>(std::malloc(kBuckets * sizeof(Node*)))) {
    if (heads_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < kBuckets; ++i) heads_[i] = nullptr;
  }
  HashSet(const HashSet&) = delete;
  HashSet& operator=(const HashSet&) = delete;
  ~HashSet() {
    for (std::size_t i = 0; i < kBuckets; ++i)
      for (Node *node = heads_[i], *next; node != nullptr; node = next) {
        next = node->next;
        std::free(node);
      }
    std::free(heads_);
  }

  template <class Access>
  bool contains(Access& access, Key key) const {
    for (Node* node = access.read(head(key)); node != nullptr; node = access.read(node->next))
      if (access.read(node->key) == key) return true;
    return false;
  }

  // False, and nothing is written, if the key is present.
  template <class Access>
  bool insert(Access& access, Key key) {
    Node* const first = access.read(head(key));
    for (Node* node = first; node != nullptr; node = access.read(node->next))
      if (access.read(node->key) == key) return false;
    access.write(head(key), access.template create<Node>(key, first));
    return true;
  }

  // False, and nothing is written, if the key is absent.
  template <class Access>
  bool remove(Access& access, Key key) {
    Node** link = &head(key);
    for (Node* node = access.read(*link); node != nullptr; node = access.read(*link)) {
      if (access.read(node->key) == key) {
        access.write(*link, access.read(node->next));
        access.destroy(node);
        return true;
      }
      link = &node->next;
    }
    return false;
  }

  // H1 every key is in its own bucket.   H2 no key is twice in a chain (hence no cycle).
  Verdict verify() const {
    Verdict verdict;
    for (std::size_t i = 0; i < kBuckets; ++i)
      for (const Node* node = heads_[i]; node != nullptr; node = node->next) {
        if (bucket(node->key) != i) return {verdict.elements, "H1: every key is in its own bucket"};
        for (const Node* earlier = heads_[i]; earlier != node; earlier = earlier->next)
          if (earlier->key == node->key) return {verdict.elements, "H2: no key is twice in a chain"};
        ++verdict.elements;
      }
    return verdict;
  }

  template <class Visit>  // visit(key), in no order
  void for_each_key(Visit&& visit) const {
    for (std::size_t i = 0; i < kBuckets; ++i)
      for (const Node* node = heads_[i]; node != nullptr; node = node->next) visit(node->key);
  }

  template <class Visit>  // visit(address, bytes) for the blocks that are no nodes
  void for_each_fixed_block(Visit&& visit) const {
    visit(heads_, kBuckets * sizeof(Node*));
  }

 private:
  static std::size_t bucket(Key key) noexcept { return Hash::of(static_cast<std::uint32_t>(key)) & (kBuckets - 1); }
  Node*& head(Key key) const noexcept { return heads_[bucket(key)]; }

  Node** const heads_;
};

}  // namespace loam::structures
