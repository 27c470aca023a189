// verify() itself: each invariant, broken by hand, is found and named; the structure is repaired before it is freed.
#include "tests/unit/structures/runners.hpp"

#include <gtest/gtest.h>
#include <utility>

namespace loam::structures {
namespace {

// The first block that is no node: the list's head, the hash set's buckets, the tree's root pointer.
template <class Pointer, class Set>
Pointer first_block(const Set& set) {
  const void* first = nullptr;
  set.for_each_fixed_block([&](const void* block, std::size_t) {
    if (first == nullptr) first = block;
  });
  return static_cast<Pointer>(const_cast<void*>(first));
}

template <class Set>
void fill(Set& set, std::int64_t count) {
  for (std::int64_t key = 0; key < count; ++key) insert<Alone>(set, key);
  ASSERT_TRUE(set.verify().holds());
}

// Puts `wrong` into `field`, expects the invariant `label` to be found broken, and repairs it.
template <class Set, class Field>
void break_it(const Set& set, Field& field, std::type_identity_t<Field> wrong, std::string_view label) {
  const Field right = std::exchange(field, wrong);
  EXPECT_EQ(set.verify().broken.substr(0, 2), label);
  field = right;
  EXPECT_TRUE(set.verify().holds());
}

TEST(Verify, List) {
  SortedList list;
  fill(list, 3);
  auto* const head = first_block<SortedList::Node*>(list);
  auto* const node = head->next;
  break_it(list, node->key, 1, "L1");            // as large as its successor
  break_it(list, node->next->next, node, "L1");  // a cycle
  break_it(list, node->next, nullptr, "L2");     // cut off
}

TEST(Verify, Hash) {
  HashSet<Identity> hash;
  fill(hash, 3);
  auto** const heads = first_block<HashSet<Identity>::Node**>(hash);
  break_it(hash, heads[1]->key, 2, "H1");
  HashSet<Identity>::Node twin{1, nullptr};
  break_it(hash, heads[1]->next, &twin, "H2");
}

TEST(Verify, Tree) {
  using Colour = RedBlackTree::Colour;
  RedBlackTree tree;
  fill(tree, 10);
  auto* const root = *first_block<RedBlackTree::Node**>(tree);
  auto* red = root->child[1];  // ascending insertion leaves the red nodes on the right
  while (red->colour != Colour::red) red = red->child[1];
  break_it(tree, root->child[0]->key, root->key + 1, "B1");
  break_it(tree, root->colour, Colour::red, "B2");
  break_it(tree, red->child[1]->colour, red->child[1]->colour == Colour::red ? Colour::black : Colour::red, "B3");
  break_it(tree, root->child[0]->colour, Colour::red, "B4");
  break_it(tree, root->child[0]->parent, root->child[1], "B5");
}

TEST(Verify, EmptyStructuresHold) {
  EXPECT_EQ(SortedList().verify().elements, 0u);
  EXPECT_EQ(HashSet<>().verify().elements, 0u);
  EXPECT_EQ(RedBlackTree().verify().elements, 0u);
  EXPECT_TRUE(SortedList().verify().holds() && HashSet<>().verify().holds() && RedBlackTree().verify().holds());
}

}  // namespace
}  // namespace loam::structures
