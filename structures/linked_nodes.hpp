// LinkedNodes: the common base of Queue and Stack: nodes of a value and a link, each a block of the process's
//   allocator. A node can be made and destroyed inside of the operation, or by the caller outside of it: link() and
//   unlink() of the structure. Here are the operations that do both.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace loam::structures {

class LinkedNodes {
 public:
  using Value = std::int64_t;

  struct Node {
    Value value;
    Node* next;
  };
  static_assert(sizeof(Node) == 16, "the element of the studies");

  LinkedNodes(const LinkedNodes&) = delete;
  LinkedNodes& operator=(const LinkedNodes&) = delete;

 protected:
  LinkedNodes() = default;
  ~LinkedNodes() = default;

  template <class Structure, class Access>
  static void make_and_link(Structure& structure, Access& access, Value value) {
    Node* const none = nullptr;
    structure.link(access, access.template create<Node>(value, none));
  }

  // False, and `value` is not changed, if the structure is empty.
  template <class Structure, class Access>
  static bool unlink_and_destroy(Structure& structure, Access& access, Value& value) {
    Node* const node = structure.unlink(access, value);
    if (node == nullptr) return false;
    access.destroy(node);
    return true;
  }

  // At rest: this node and all that follow.
  static void free_all(Node* node) noexcept {
    for (Node* next; node != nullptr; node = next) {
      next = node->next;
      std::free(node);
    }
  }
};

}  // namespace loam::structures
