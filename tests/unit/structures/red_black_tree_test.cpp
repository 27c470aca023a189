// The tree's shapes, exhaustively: all insertion orders of few keys, and removal of every key from each.
#include "tests/unit/structures/runners.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

namespace loam::structures {
namespace {

constexpr int kKeys = 6;

struct CountingAccess : PlainAccess {
  template <class Field>
  Field read(const Field& field) {
    ++reads;
    return PlainAccess::read(field);
  }
  int reads = 0;
};

struct WatchingAccess : PlainAccess {
  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) {
    if constexpr (std::is_same_v<Field, std::int64_t>) copied.push_back(value);
    PlainAccess::write(field, value);
  }
  void destroy(RedBlackTree::Node* node) {
    destroyed_key = node->key;
    PlainAccess::destroy(node);
  }
  std::int64_t destroyed_key = 0;
  std::vector<std::int64_t> copied;
};

struct RefusingAccess {
  template <class Field>
  Field read(const Field& field) const {
    return field;
  }
  template <class Field>
  void write(Field&, std::type_identity_t<Field>) const {
    ADD_FAILURE() << "written";
  }
  template <class Node, class... Values>
  Node* create(Values...) const {
    ADD_FAILURE() << "created";
    return nullptr;
  }
  void destroy(void*) const { ADD_FAILURE() << "destroyed"; }
};

TEST(RedBlackTree, EveryInsertionOrderAndManyRemovalOrders) {
  std::array<std::int64_t, kKeys> order;
  std::iota(order.begin(), order.end(), 0);
  base::Random random(1);
  do {
    for (int repeat = 0; repeat < 12; ++repeat) {
      RedBlackTree tree;
      for (const auto key : order) {
        ASSERT_TRUE(insert<Alone>(tree, key));
        ASSERT_TRUE(tree.verify().holds()) << tree.verify().broken;
      }
      auto removal = order;
      std::shuffle(removal.begin(), removal.end(), random);
      std::size_t left = kKeys;
      for (const auto key : removal) {
        ASSERT_TRUE(remove<Alone>(tree, key));
        const Verdict verdict = tree.verify();
        ASSERT_TRUE(verdict.holds()) << verdict.broken;
        ASSERT_EQ(verdict.elements, --left);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Ascending, descending and random keys: the depth that a reader meets is at most twice the logarithm.
TEST(RedBlackTree, StaysShallow) {
  constexpr std::int64_t kCount = 4096;
  for (int kind = 0; kind < 3; ++kind) {
    RedBlackTree tree;
    base::Random random(3);
    for (std::int64_t i = 0; i < kCount; ++i)
      insert<Alone>(tree, kind == 0 ? i : kind == 1 ? -i : static_cast<std::int64_t>(random() >> 2));
    const int depth_max = 2 * static_cast<int>(std::log2(kCount + 1));
    tree.for_each_key([&](std::int64_t key) {
      CountingAccess access;
      EXPECT_TRUE(tree.contains(access, key));
      EXPECT_LE(access.reads, 1 + 2 * depth_max);  // the root, then a key and a link per level
    });
    ASSERT_TRUE(tree.verify().holds());
  }
}

// The block that vanishes is the successor's: its key and value move into the place of the removed key.
TEST(RedBlackTree, RemovalCopiesTheSuccessorAndUnlinksIt) {
  RedBlackTree tree;
  for (const std::int64_t key : {50, 25, 75, 60, 90}) {
    PlainAccess access;
    ASSERT_TRUE(tree.insert(access, key, key * 10));
  }
  WatchingAccess access;
  ASSERT_TRUE(tree.remove(access, 50));
  EXPECT_EQ(access.destroyed_key, 60);
  EXPECT_EQ(access.copied, (std::vector<std::int64_t>{60, 600}));
  EXPECT_TRUE(tree.verify().holds());
}

TEST(Structures, ARefusedOperationWritesNothing) {
  RefusingAccess access;
  const auto check = [&](auto& set) {
    insert<Alone>(set, 1);
    EXPECT_FALSE(set.insert(access, 1));
    EXPECT_FALSE(set.remove(access, 2));
  };
  RedBlackTree tree;
  SortedList list;
  HashSet<> hash;
  check(tree);
  check(list);
  check(hash);
}

}  // namespace
}  // namespace loam::structures
