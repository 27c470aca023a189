// Stacks, sequential and lock-free: order, nothing lost or doubled, what verify() finds, a thread that stands still.
#include "structures/stack.hpp"

#include "structures/by_epochs.hpp"
#include "structures/by_hazards.hpp"
#include "structures/lock_free_stack.hpp"
#include "tests/unit/structures/standing_still.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace loam::structures {
namespace {

#ifdef LOAM_INSTRUMENTED
constexpr std::int64_t kEach = 2'000;
#else
constexpr std::int64_t kEach = 40'000;
#endif

template <class AnyStack>
std::vector<std::int64_t> contents(const AnyStack& stack) {
  std::vector<std::int64_t> all;
  stack.for_each([&all](std::int64_t value) { all.push_back(value); });
  return all;
}

TEST(Stack, LastInFirstOut) {
  PlainAccess access;
  const std::int64_t before = PlainAccess::live_blocks();
  Stack stack;
  std::int64_t value = 7;
  EXPECT_FALSE(stack.pop(access, value));
  EXPECT_EQ(value, 7) << "an empty stack changes nothing";
  for (std::int64_t i = 1; i <= 5; ++i) stack.push(access, i);
  EXPECT_EQ(contents(stack), (std::vector<std::int64_t>{5, 4, 3, 2, 1}));
  EXPECT_EQ(stack.verify().elements, 5U);
  EXPECT_TRUE(stack.verify().holds());
  for (std::int64_t i = 5; i >= 1; --i) {
    ASSERT_TRUE(stack.pop(access, value));
    ASSERT_EQ(value, i);
  }
  EXPECT_FALSE(stack.pop(access, value));
  EXPECT_EQ(stack.verify().elements, 0U);
  EXPECT_EQ(PlainAccess::live_blocks(), before);
}

TEST(Stack, NodesMayBeMadeAndFreedOutside) {
  PlainAccess access;
  Stack stack;
  Stack::Node first{1, nullptr}, second{2, nullptr};
  stack.link(access, &first);
  stack.link(access, &second);
  std::int64_t value = 0;
  EXPECT_EQ(stack.unlink(access, value), &second);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(stack.unlink(access, value), &first);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(stack.unlink(access, value), nullptr);
}

TEST(Stack, VerifyFindsLinksThatLeadNowhere) {
  PlainAccess access;
  for (int length = 1; length <= 9; ++length)
    for (int back = 1; back <= length; ++back) {
      std::vector<Stack::Node> nodes(static_cast<std::size_t>(length), Stack::Node{0, nullptr});
      Stack stack;
      for (Stack::Node& node : nodes) stack.link(access, &node);
      EXPECT_TRUE(stack.verify().holds());
      nodes[0].next = &nodes[static_cast<std::size_t>(back - 1)];
      EXPECT_EQ(stack.verify().broken, "T1: links lead to an end") << length << ' ' << back;
      nodes[0].next = nullptr;
      std::int64_t value;
      while (stack.unlink(access, value) != nullptr) {
      }
    }
}

template <class Reclaimer>
struct LockFreeStacks : testing::Test {
  // Of all that ended and the caller.
  static std::int64_t live() {
    EXPECT_EQ(Reclaimer::quiesce(), 0U);
    return PlainAccess::live_blocks();
  }
  static void end_thread() {
    Reclaimer::thread_exit();
    PlainAccess::hand_over_counts();
  }
};
using Reclaimers = testing::Types<ByHazards, ByEpochs>;
TYPED_TEST_SUITE(LockFreeStacks, Reclaimers);

TYPED_TEST(LockFreeStacks, LastInFirstOut) {
  const std::int64_t before = this->live();
  LockFreeStack<TypeParam> stack;
  std::int64_t value = 7;
  EXPECT_FALSE(stack.pop(value));
  EXPECT_EQ(value, 7) << "an empty stack changes nothing";
  for (int round = 0; round < 300; ++round) {
    for (std::int64_t i = 1; i <= 5; ++i) stack.push(i);
    EXPECT_EQ(contents(stack), (std::vector<std::int64_t>{5, 4, 3, 2, 1}));
    EXPECT_TRUE(stack.verify().holds());
    for (std::int64_t i = 5; i >= 1; --i) {
      ASSERT_TRUE(stack.pop(value));
      ASSERT_EQ(value, i);
    }
  }
  EXPECT_EQ(this->live(), before) << "popped nodes are freed";
}

TYPED_TEST(LockFreeStacks, NothingIsLostOrDoubled) {
  constexpr unsigned kThreads = 4;
  const std::int64_t before = this->live();
  LockFreeStack<TypeParam> stack;
  std::vector<std::atomic<int>> seen(kThreads * kEach);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < kEach; ++i) {
        stack.push(std::int64_t{t} * kEach + i);
        std::int64_t out = 0;
        // Each pushes before it pops: there is always one.
        if (!stack.pop(out)) ADD_FAILURE() << "empty";
        seen[static_cast<std::size_t>(out)].fetch_add(1, std::memory_order_relaxed);
      }
      this->end_thread();
    });
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], 1) << "element " << i;
  EXPECT_EQ(stack.verify().elements, 0U);
  EXPECT_EQ(this->live(), before);
}

#ifdef LOAM_CHECKED
// The others get on, and the node that the stopped one reads neither is freed under it nor comes back (which the address
// sanitizer sees, and the values).
TYPED_TEST(LockFreeStacks, OthersGetOnWhileOneStandsStill) {
  for (const char* const point : {"lock-free stack: the top was read", "lock-free stack: the top is protected"}) {
    SCOPED_TRACE(point);
    const std::int64_t before = this->live();
    LockFreeStack<TypeParam> stack;
    for (std::int64_t i = 1; i <= 3; ++i) stack.push(i);
    std::int64_t got = 0;
    std::vector<std::int64_t> taken;
    while_standing_still(
        point,
        [&] {
          EXPECT_TRUE(stack.pop(got));
          this->end_thread();
        },
        [&] {
          std::int64_t value = 0;
          for (int i = 0; i < 2; ++i) {
            ASSERT_TRUE(stack.pop(value));
            taken.push_back(value);
          }
          for (std::int64_t i = 4; i <= 3'000; ++i) {
            stack.push(i);
            ASSERT_TRUE(stack.pop(value));
            ASSERT_EQ(value, i);
          }
          stack.push(2);
        });
    EXPECT_EQ(taken, (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(got, 2) << "the newest of those that were there when it went on";
    EXPECT_EQ(contents(stack), (std::vector<std::int64_t>{1}));
    std::int64_t rest = 0;
    while (stack.pop(rest)) {
    }
    EXPECT_EQ(this->live(), before);
  }
}
#endif

}  // namespace
}  // namespace loam::structures
