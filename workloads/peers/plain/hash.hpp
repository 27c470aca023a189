// A chained hash set as one writes it for one thread.
#pragma once

#include "structures/verdict.hpp"

#include <cstdint>
#include <cstdlib>

namespace loam::workloads::plain {

// kFactor: of the multiplicative hash; 1 for identity.
template <std::uint32_t kFactor>
struct Hash {
  struct Node {
    std::int64_t key;
    Node* next;
  };
  static constexpr std::uint32_t kBuckets = 131072;

  Node** heads;
  std::int64_t live = 0;  // nodes from malloc that were not freed

  Hash() {
    heads = static_cast<Node**>(std::malloc(kBuckets * sizeof(Node*)));
    if (heads == nullptr) std::abort();
    for (std::uint32_t i = 0; i < kBuckets; ++i) heads[i] = nullptr;
  }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  ~Hash() {
    for (std::uint32_t i = 0; i < kBuckets; ++i)
      while (Node* const node = heads[i]) {
        heads[i] = node->next;
        std::free(node);
      }
    std::free(heads);
  }

  static std::uint32_t bucket(std::int64_t key) { return static_cast<std::uint32_t>(key) * kFactor & (kBuckets - 1); }

  bool contains(std::int64_t key) const {
    for (const Node* node = heads[bucket(key)]; node != nullptr; node = node->next)
      if (node->key == key) return true;
    return false;
  }

  bool insert(std::int64_t key) {
    Node** const head = &heads[bucket(key)];
    Node* const first = *head;
    for (const Node* node = first; node != nullptr; node = node->next)
      if (node->key == key) return false;
    Node* const node = static_cast<Node*>(std::malloc(sizeof(Node)));
    if (node == nullptr) std::abort();
    node->key = key;
    node->next = first;
    *head = node;
    ++live;
    return true;
  }

  bool remove(std::int64_t key) {
    Node** link = &heads[bucket(key)];
    for (Node* node = *link; node != nullptr; node = *link) {
      if (node->key == key) {
        *link = node->next;
        std::free(node);
        --live;
        return true;
      }
      link = &node->next;
    }
    return false;
  }

  structures::Verdict verify() const {
    std::size_t elements = 0;
    for (std::uint32_t i = 0; i < kBuckets; ++i)
      for (const Node* node = heads[i]; node != nullptr; node = node->next) {
        if (bucket(node->key) != i) return {elements, "every key is in its own bucket"};
        ++elements;
      }
    return {elements, {}};
  }

  template <class Visit>
  void for_each_key(Visit visit) const {
    for (std::uint32_t i = 0; i < kBuckets; ++i)
      for (const Node* node = heads[i]; node != nullptr; node = node->next) visit(node->key);
  }
};

}  // namespace loam::workloads::plain
