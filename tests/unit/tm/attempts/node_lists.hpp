// node_lists: what tests of memory in transactions share: nodes, and lists of them that threads change and cancel.
#pragma once

#include "runtime/tm/tm.hpp"

#include <cstdint>

namespace loam::tm {

struct Node {
  std::int64_t key;
  Node* next;
};
struct Cancel {};

inline std::int64_t live_blocks() {
  const Statistics all = statistics_of_all();
  return static_cast<std::int64_t>(all.blocks_allocated - all.blocks_freed);
}

// Eight lists that threads share.
struct NodeLists {
  alignas(64) Node* heads[8] = {};

  // By thread t: inserts and deletes in turn at the front; every thirteenth transaction is cancelled.
  template <class Driver>
  void change(int t, int transactions) {
    for (int i = 0; i < transactions; ++i) {
      auto& head = heads[(i * 7 + t) % 8];
      try {
        Driver::update([&](auto& tx) {
          if (Node* const first = tx.read(head); first != nullptr && i % 2 == 0) {
            tx.write(head, tx.read(first->next));
            tx.destroy(first);
          } else {
            tx.write(head, tx.template create<Node>(i, tx.read(head)));
          }
          if (i % 13 == 0) throw Cancel{};
        });
      } catch (const Cancel&) {
      }
    }
  }

  // Nodes that the lists hold, while nobody changes them.
  std::int64_t reachable() const {
    std::int64_t nodes = 0;
    for (const Node* node : heads)
      for (; node != nullptr; node = node->next) ++nodes;
    return nodes;
  }
};

}  // namespace loam::tm
