// RedBlackMap: an ordered map from key to value; no sentinel, the empty subtree is null.
//   RedBlackTree is the one of integers, whose nodes have the size that the studies name.
//   Source Guibas and Sedgewick, FOCS 1978.   Cost: O(log n) per operation; at most 3 rotations per change.
//   Removing a node with two children copies the successor's key and value into it and unlinks the successor, as the
//   published benchmarks do: it moves data between nodes, so pointers to nodes do not survive a removal.
//   Caveat: constructor, destructor, verify() and for_each_*() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace loam::structures {

// Keys that know their own order. Another policy has the same two functions, which read only what no transaction
// changes.
struct NaturalOrder {
  template <class Key>
  static bool equal(const Key& a, const Key& b) noexcept {
    return a == b;
  }
  template <class Key>
  static bool less(const Key& a, const Key& b) noexcept {
    return a < b;
  }
};

// Key and Value are words: numbers or pointers.
// kInlined: changes become part of whoever calls them, as loops that are measured by the instruction want it. Else they
// are functions, one for all calls, to which the access policy is copied so that it stays in registers.
template <class KeyType, class ValueType, class Order = NaturalOrder, bool kInlined = false>
class RedBlackMap {
 public:
  using Key = KeyType;
  using Value = ValueType;

  enum class Colour : std::int64_t { black, red };

  struct Node {
    Key key;
    Value value;
    Node* child[2];  // left, right
    Node* parent;
    Colour colour;

    // A leaf.
    Node(Key key, Value value, Node* parent, Colour colour) noexcept
        : key(key), value(value), child{nullptr, nullptr}, parent(parent), colour(colour) {}
  };
  static_assert(sizeof(Node) == 48 && sizeof(Key) == 8 && sizeof(Value) == 8, "the study's tree node");

  RedBlackMap() : top_(static_cast<Top*>(std::malloc(sizeof(Top)))) {
    if (top_ == nullptr) throw std::bad_alloc();
    ::new (top_) Top{nullptr};
  }
  RedBlackMap(const RedBlackMap&) = delete;
  RedBlackMap& operator=(const RedBlackMap&) = delete;
  ~RedBlackMap() {
    free_subtree(top_->root);
    std::free(top_);
  }

  template <class Access>
  bool contains(Access& access, Key key) const {
    return find(access, key) != nullptr;
  }

  // The value of a key, or `none`.
  template <class Access>
  Value get(Access& access, Key key, Value none) const {
    Node* const node = find(access, key);
    return node == nullptr ? none : access.read(node->value);
  }

  // False, and nothing is written, if the key is present.
  template <class Access>
  bool insert(Access& access, Key key, Value value) {
    if constexpr (kInlined)
      return put(access, key, value);
    else
      return put_apart(access, key, value);
  }

  template <class Access>
  bool insert(Access& access, Key key)
    requires std::is_same_v<Key, Value>
  {
    return insert(access, key, key);
  }

  // False, and nothing is written, if the key is absent.
  template <class Access>
  bool remove(Access& access, Key key) {
    if constexpr (kInlined)
      return take(access, key);
    else
      return take_apart(access, key);
  }

  // B1 keys ascend in order (hence no cycle and no key twice).   B2 the root is black.   B3 a red node has no red
  // child. B4 every path from a node to null has as many black nodes.   B5 a child's parent is its parent.
  Verdict verify() const {
    Verdict verdict;
    const Node* const root = top_->root;
    if (root != nullptr && root->colour != Colour::black) {
      verdict.broken = "B2: the root is black";
    } else {
      verify_subtree(root, nullptr, nullptr, nullptr, verdict);
    }
    return verdict;
  }

  template <class Visit>  // visit(key), ascending
  void for_each_key(Visit&& visit) const {
    for_each_node(top_->root, [&visit](const Node* node) { visit(node->key); });
  }
  template <class Visit>  // visit(key, value), ascending by key
  void for_each(Visit&& visit) const {
    for_each_node(top_->root, [&visit](const Node* node) { visit(node->key, node->value); });
  }

  template <class Visit>  // visit(address, bytes) for the blocks that are no nodes
  void for_each_fixed_block(Visit&& visit) const {
    visit(top_, sizeof(Top));
  }

 private:
  // A block of its own, so that the root pointer lies where an allocator puts it and not in this object.
  struct Top {
    Node* root;
  };

  static constexpr bool kLeft = false, kRight = true;  // indices of child

  // &node->child[right], as a choice between two addresses: GCC makes it a conditional move. It makes a branch of
  // right ? read(right) : read(left), which a random key mispredicts half the time (1.5 times slower look-ups), and a
  // longer chain of an index (1.25 times slower transactions).
  static Node** link_towards(Node* node, bool right) noexcept {
    Node **const left_link = node->child, **const right_link = left_link + 1;
    return right ? right_link : left_link;
  }

  template <class Access>
  [[gnu::noinline]] bool put_apart(Access access, Key key, Value value) {
    return put(access, key, value);
  }
  template <class Access>
  [[gnu::noinline]] bool take_apart(Access access, Key key) {
    return take(access, key);
  }

  template <class Access>
  bool put(Access& access, Key key, Value value) {
    Node *parent = nullptr, **link = &top_->root;
    while (Node* const node = access.read(*link)) {
      const Key at = access.read(node->key);
      if (Order::equal(at, key)) return false;
      parent = node;
      link = link_towards(node, Order::less(at, key));
    }
    const Colour colour = parent == nullptr ? Colour::black : Colour::red;
    Node* const node = access.template create<Node>(key, value, parent, colour);
    access.write(*link, node);
    if (parent != nullptr) repair_after_insertion(access, node, parent);
    return true;
  }

  template <class Access>
  bool take(Access& access, Key key) {
    Node* node = find(access, key);
    if (node == nullptr) return false;
    Node *left = access.read(node->child[kLeft]), *right = access.read(node->child[kRight]);
    if (left != nullptr && right != nullptr) {
      Node* successor = right;
      while (Node* const next = access.read(successor->child[kLeft])) successor = next;
      access.write(node->key, access.read(successor->key));
      access.write(node->value, access.read(successor->value));
      node = successor;
      left = nullptr;
      right = access.read(node->child[kRight]);
    }
    Node* const child = left != nullptr ? left : right;
    Node* const parent = access.read(node->parent);
    if (child != nullptr) access.write(child->parent, parent);
    replace_child(access, parent, node, child);
    if (access.read(node->colour) == Colour::black) repair_after_removal(access, child, parent);
    access.destroy(node);
    return true;
  }

  template <class Access>
  static bool is_red(Access& access, Node* node) {
    return node != nullptr && access.read(node->colour) == Colour::red;
  }

  template <class Access>
  Node* find(Access& access, Key key) const {
    Node* node = access.read(top_->root);
    while (node != nullptr) {
      const Key at = access.read(node->key);
      if (Order::equal(at, key)) break;
      node = access.read(*link_towards(node, Order::less(at, key)));
    }
    return node;
  }

  template <class Access>
  void replace_child(Access& access, Node* parent, Node* before, Node* after) {
    if (parent == nullptr) {
      access.write(top_->root, after);
    } else {
      access.write(parent->child[access.read(parent->child[kRight]) == before], after);
    }
  }

  // Moves `node` down to `side`; its other child takes its place.
  template <class Access>
  void rotate(Access& access, Node* node, bool side) {
    Node* const riser = access.read(node->child[!side]);
    Node* const middle = access.read(riser->child[side]);
    Node* const parent = access.read(node->parent);
    access.write(node->child[!side], middle);
    if (middle != nullptr) access.write(middle->parent, node);
    access.write(riser->parent, parent);
    replace_child(access, parent, node, riser);
    access.write(riser->child[side], node);
    access.write(node->parent, riser);
  }

  // `node` is red, `parent` its parent: restores B2 and B3 upwards.
  template <class Access>
  void repair_after_insertion(Access& access, Node* node, Node* parent) {
    while (access.read(parent->colour) == Colour::red) {
      Node* const grand = access.read(parent->parent);  // not null: a red node is not the root (B2)
      const bool side = access.read(grand->child[kRight]) == parent;
      Node* const uncle = access.read(grand->child[!side]);
      if (!is_red(access, uncle)) {
        if (access.read(parent->child[side]) != node) {
          rotate(access, parent, side);
          parent = node;
        }
        access.write(parent->colour, Colour::black);
        access.write(grand->colour, Colour::red);
        rotate(access, grand, !side);
        return;
      }
      access.write(parent->colour, Colour::black);
      access.write(uncle->colour, Colour::black);
      node = grand;
      parent = access.read(node->parent);
      if (parent == nullptr) return;  // the root stays black
      access.write(node->colour, Colour::red);
    }
  }

  // Paths through `node` (perhaps null), child of `parent`, lack one black node: restores B4.
  template <class Access>
  void repair_after_removal(Access& access, Node* node, Node* parent) {
    while (parent != nullptr && !is_red(access, node)) {
      if (refill(access, parent, access.read(parent->child[kLeft]) != node)) return;
      node = parent;
      parent = access.read(node->parent);
    }
    if (node != nullptr && access.read(node->colour) == Colour::red) access.write(node->colour, Colour::black);
  }

  // Paths through `parent`'s child on `side` lack one black node.
  // returns true if they lack it no more; false if now all paths through `parent` do
  template <class Access>
  bool refill(Access& access, Node* parent, bool side) {
    Node* sibling = access.read(parent->child[!side]);  // not null: its paths have a black node more (B4)
    if (access.read(sibling->colour) == Colour::red) {
      access.write(sibling->colour, Colour::black);
      access.write(parent->colour, Colour::red);
      rotate(access, parent, side);
      sibling = access.read(parent->child[!side]);
    }
    Node* const near = access.read(sibling->child[side]);
    Node* far = access.read(sibling->child[!side]);
    if (!is_red(access, far)) {
      if (!is_red(access, near)) {
        access.write(sibling->colour, Colour::red);
        return false;
      }
      access.write(near->colour, Colour::black);
      access.write(sibling->colour, Colour::red);
      rotate(access, sibling, !side);
      far = sibling;
      sibling = near;
    }
    access.write(sibling->colour, access.read(parent->colour));
    access.write(parent->colour, Colour::black);
    access.write(far->colour, Colour::black);
    rotate(access, parent, side);
    return true;
  }

  // `low`, `high`: nodes whose keys bound this subtree, or null. returns its black height; 0 once something is broken
  static int verify_subtree(const Node* node, const Node* parent, const Node* low, const Node* high, Verdict& verdict) {
    if (node == nullptr) return 1;
    ++verdict.elements;
    const bool red = node->colour == Colour::red;
    if ((low != nullptr && !Order::less(low->key, node->key)) ||
        (high != nullptr && !Order::less(node->key, high->key))) {
      verdict.broken = "B1: keys ascend in order";
    } else if (node->parent != parent) {
      verdict.broken = "B5: a child's parent is its parent";
    } else if (red && parent != nullptr && parent->colour == Colour::red) {
      verdict.broken = "B3: a red node has no red child";
    }
    if (!verdict.holds()) return 0;
    const int left = verify_subtree(node->child[kLeft], node, low, node, verdict);
    const int right = verdict.holds() ? verify_subtree(node->child[kRight], node, node, high, verdict) : 0;
    if (verdict.holds() && left != right) verdict.broken = "B4: all paths have as many black nodes";
    return left + (red ? 0 : 1);
  }

  template <class Visit>
  static void for_each_node(const Node* node, const Visit& visit) {
    if (node == nullptr) return;
    for_each_node(node->child[kLeft], visit);
    visit(node);
    for_each_node(node->child[kRight], visit);
  }

  static void free_subtree(Node* node) {
    if (node == nullptr) return;
    free_subtree(node->child[kLeft]);
    free_subtree(node->child[kRight]);
    std::free(node);
  }

  Top* const top_;
};

using RedBlackTree = RedBlackMap<std::int64_t, std::int64_t, NaturalOrder, true>;

}  // namespace loam::structures
