// A red-black tree as one writes it for one thread; links are an array, so that mirrored cases are one code.
#pragma once

#include "structures/verdict.hpp"

#include <cstdint>
#include <cstdlib>

namespace loam::workloads::plain {

struct Tree {
  struct Node {
    std::int64_t key, value;
    Node* child[2];  // left, right
    Node* parent;
    std::int64_t red;
  };

  Node** root;
  std::int64_t live = 0;  // nodes from malloc that were not freed

  Tree() {
    root = static_cast<Node**>(std::malloc(sizeof *root));
    if (root == nullptr) std::abort();
    *root = nullptr;
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    free_below(*root);
    std::free(root);
  }

  Node* find(std::int64_t key) const {
    Node* node = *root;
    while (node != nullptr && node->key != key) node = node->child[node->key < key];
    return node;
  }

  bool contains(std::int64_t key) const { return find(key) != nullptr; }

  bool insert(std::int64_t key) {
    Node* parent = nullptr;
    Node** link = root;
    while (*link != nullptr) {
      parent = *link;
      if (parent->key == key) return false;
      link = &parent->child[parent->key < key];
    }
    Node* const node = static_cast<Node*>(std::malloc(sizeof(Node)));
    if (node == nullptr) std::abort();
    *node = {key, key, {nullptr, nullptr}, parent, parent != nullptr};
    *link = node;
    ++live;
    if (parent != nullptr) repair_red(node);
    return true;
  }

  bool remove(std::int64_t key) {
    Node* node = find(key);
    if (node == nullptr) return false;
    if (node->child[0] != nullptr && node->child[1] != nullptr) {
      Node* successor = node->child[1];
      while (successor->child[0] != nullptr) successor = successor->child[0];
      node->key = successor->key;
      node->value = successor->value;
      node = successor;
    }
    Node* const child = node->child[0] != nullptr ? node->child[0] : node->child[1];
    if (child != nullptr) child->parent = node->parent;
    relink(node->parent, node, child);
    if (!node->red) repair_black(child, node->parent);
    std::free(node);
    --live;
    return true;
  }

  void relink(Node* parent, const Node* before, Node* after) {
    if (parent == nullptr) {
      *root = after;
    } else {
      parent->child[parent->child[1] == before] = after;
    }
  }

  // Moves `node` down to `side`.
  void rotate(Node* node, int side) {
    Node* const riser = node->child[1 - side];
    node->child[1 - side] = riser->child[side];
    if (riser->child[side] != nullptr) riser->child[side]->parent = node;
    riser->parent = node->parent;
    relink(node->parent, node, riser);
    riser->child[side] = node;
    node->parent = riser;
  }

  void repair_red(Node* node) {
    for (Node* parent = node->parent; parent->red;) {
      Node* const grand = parent->parent;
      const int side = grand->child[1] == parent;
      Node* const uncle = grand->child[1 - side];
      if (uncle == nullptr || !uncle->red) {
        if (parent->child[side] != node) {
          rotate(parent, side);
          parent = node;
        }
        parent->red = 0;
        grand->red = 1;
        rotate(grand, 1 - side);
        return;
      }
      parent->red = uncle->red = 0;
      node = grand;
      parent = node->parent;
      if (parent == nullptr) return;
      node->red = 1;
    }
  }

  void repair_black(Node* node, Node* parent) {
    while (parent != nullptr && (node == nullptr || !node->red)) {
      const int side = parent->child[0] != node;
      Node* sibling = parent->child[1 - side];
      if (sibling->red) {
        sibling->red = 0;
        parent->red = 1;
        rotate(parent, side);
        sibling = parent->child[1 - side];
      }
      Node* const near = sibling->child[side];
      Node* far = sibling->child[1 - side];
      if (far == nullptr || !far->red) {
        if (near == nullptr || !near->red) {
          sibling->red = 1;
          node = parent;
          parent = node->parent;
          continue;
        }
        near->red = 0;
        sibling->red = 1;
        rotate(sibling, 1 - side);
        far = sibling;
        sibling = near;
      }
      sibling->red = parent->red;
      parent->red = far->red = 0;
      rotate(parent, side);
      return;
    }
    if (node != nullptr) node->red = 0;
  }

  structures::Verdict verify() const {
    structures::Verdict verdict;
    if (*root != nullptr && (*root)->red) return {0, "the root is black"};
    height(*root, nullptr, INT64_MIN, INT64_MAX, verdict);
    return verdict;
  }

  // Black height of the subtree, whose keys lie strictly between low and high.
  static int height(const Node* node, const Node* parent, std::int64_t low, std::int64_t high,
                    structures::Verdict& verdict) {
    if (node == nullptr) return 1;
    ++verdict.elements;
    if (node->key <= low || node->key >= high) {
      verdict.broken = "keys ascend in order";
    } else if (node->parent != parent) {
      verdict.broken = "a child's parent is its parent";
    } else if (node->red && parent != nullptr && parent->red) {
      verdict.broken = "a red node has no red child";
    }
    if (!verdict.holds()) return 0;
    const int left = height(node->child[0], node, low, node->key, verdict);
    const int right = verdict.holds() ? height(node->child[1], node, node->key, high, verdict) : left;
    if (left != right) verdict.broken = "all paths have as many black nodes";
    return left + (node->red ? 0 : 1);
  }

  template <class Visit>
  void for_each_key(Visit visit) const {
    for_each_key_below(*root, visit);
  }
  template <class Visit>
  static void for_each_key_below(const Node* node, Visit& visit) {
    if (node == nullptr) return;
    for_each_key_below(node->child[0], visit);
    visit(node->key);
    for_each_key_below(node->child[1], visit);
  }

  static void free_below(Node* node) {
    if (node == nullptr) return;
    free_below(node->child[0]);
    free_below(node->child[1]);
    std::free(node);
  }
};

}  // namespace loam::workloads::plain
