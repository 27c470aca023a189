// A sorted linked list as one writes it for one thread.
#pragma once

#include "structures/verdict.hpp"

#include <cstdint>
#include <cstdlib>

namespace loam::workloads::plain {

struct List {
  struct Node {
    std::int64_t key;
    Node* next;
  };

  Node* head;
  std::int64_t live = 0;  // nodes from malloc that were not freed

  List() { head = make(INT64_MIN, make(INT64_MAX, nullptr)); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (head != nullptr) {
      Node* const next = head->next;
      std::free(head);
      head = next;
    }
  }

  static Node* make(std::int64_t key, Node* next) {
    Node* const node = static_cast<Node*>(std::malloc(sizeof(Node)));
    if (node == nullptr) std::abort();
    node->key = key;
    node->next = next;
    return node;
  }

  bool contains(std::int64_t key) const {
    const Node* node = head->next;
    while (node->key < key) node = node->next;
    return node->key == key;
  }

  bool insert(std::int64_t key) {
    Node* previous = head;
    Node* node = previous->next;
    while (node->key < key) {
      previous = node;
      node = node->next;
    }
    if (node->key == key) return false;
    previous->next = make(key, node);
    ++live;
    return true;
  }

  bool remove(std::int64_t key) {
    Node* previous = head;
    Node* node = previous->next;
    while (node->key < key) {
      previous = node;
      node = node->next;
    }
    if (node->key != key) return false;
    previous->next = node->next;
    std::free(node);
    --live;
    return true;
  }

  structures::Verdict verify() const {
    std::size_t elements = 0;
    for (const Node* node = head; node->next != nullptr; node = node->next) {
      if (node->key >= node->next->key) return {elements, "keys ascend strictly"};
      if (node != head) ++elements;
    }
    return {elements, {}};
  }

  template <class Visit>
  void for_each_key(Visit visit) const {
    for (const Node* node = head->next; node->next != nullptr; node = node->next) visit(node->key);
  }
};

}  // namespace loam::workloads::plain
