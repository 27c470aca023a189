// The binary heap gives its elements in order, grows, is taken back with its transaction, and verify() finds what is
// wrong.
#include "structures/binary_heap.hpp"
#include "tests/unit/structures/runners.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <thread>
#include <vector>

namespace loam::structures {
namespace {

struct Greater {
  static bool before(std::uint64_t a, std::uint64_t b) { return a > b; }
};
using Heap = BinaryHeap<std::uint64_t, Greater>;

template <class Runner>
class Heaps : public testing::Test {};
using Runners = testing::Types<Alone, Locked, Transaction>;
TYPED_TEST_SUITE(Heaps, Runners);

template <class Runner>
void put(Heap& heap, std::uint64_t element) {
  Runner::update([&](auto& access) {
    heap.insert(access, element);
    return true;
  });
}
template <class Runner>
bool take(Heap& heap, std::uint64_t& element) {
  return Runner::update([&](auto& access) { return heap.remove(access, element); });
}

TYPED_TEST(Heaps, GivesTheGreatestFirst) {
  PlainAccess setup;
  Heap heap(setup, 0);
  std::vector<std::uint64_t> expected;
  std::uint64_t word = 1;
  for (int i = 0; i < 1000; ++i) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    put<TypeParam>(heap, word >> 56);  // many are equal
    expected.push_back(word >> 56);
    ASSERT_TRUE(heap.verify().holds());
  }
  EXPECT_EQ(heap.verify().elements, 1000u);
  std::sort(expected.begin(), expected.end(), std::greater<>());
  for (const auto next : expected) {
    std::uint64_t element = ~std::uint64_t{0};
    ASSERT_TRUE(take<TypeParam>(heap, element));
    ASSERT_EQ(element, next);
    ASSERT_TRUE(heap.verify().holds());
  }
  std::uint64_t untouched = 77;
  EXPECT_FALSE(take<TypeParam>(heap, untouched));
  EXPECT_EQ(untouched, 77u);
}

TEST(BinaryHeap, ThreadsTakeEachElementOnce) {
  constexpr std::uint64_t kEach = 2000;
  PlainAccess setup;
  Heap heap(setup, 4);
  std::vector<std::uint64_t> taken[2];
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        put<Transaction>(heap, 2 * i + t);
        std::uint64_t element;
        if (i % 2 == 1 && take<Transaction>(heap, element)) taken[t].push_back(element);
      }
      Transaction::thread_exit();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(heap.verify().holds());
  std::vector<std::uint64_t> all = taken[0];
  all.insert(all.end(), taken[1].begin(), taken[1].end());
  heap.for_each([&](std::uint64_t element) { all.push_back(element); });
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 2 * kEach);
  for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
}

TEST(BinaryHeap, WhatIsCancelledWasNotThere) {
  PlainAccess setup;
  Heap heap(setup, 1);
  put<Transaction>(heap, 5);
  try {
    tm::atomically([&](auto& tx) {
      for (std::uint64_t i = 6; i < 20; ++i) heap.insert(tx, i);  // grows several times
      tm::cancel(tx);
    });
  } catch (const tm::Cancelled&) {
  }
  EXPECT_EQ(heap.verify().elements, 1u);
  std::uint64_t element = 0;
  EXPECT_TRUE(take<Transaction>(heap, element));
  EXPECT_EQ(element, 5u);
}

TEST(BinaryHeap, VerifyFindsWhatIsWrong) {
  PlainAccess setup;
  Heap heap(setup, 2);
  put<Alone>(heap, 3);
  put<Alone>(heap, 1);
  std::uint64_t* last = nullptr;
  heap.for_each([&](const std::uint64_t& element) { last = const_cast<std::uint64_t*>(&element); });
  *last = 9;
  EXPECT_EQ(heap.verify().broken.substr(0, 2), "P1");
}

}  // namespace
}  // namespace loam::structures
