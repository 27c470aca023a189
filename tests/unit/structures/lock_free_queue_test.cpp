// The lock-free queue under both reclaimers: order, nothing lost, nothing held back at the end, what a thread that stands
// still holds back.
#include "structures/lock_free_queue.hpp"

#include "structures/by_epochs.hpp"
#include "structures/by_hazards.hpp"
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

template <class Reclaimer>
struct LockFreeQueues : testing::Test {
  using Queue = LockFreeQueue<Reclaimer>;

  static std::vector<std::int64_t> contents(const Queue& queue) {
    std::vector<std::int64_t> all;
    queue.for_each([&all](std::int64_t value) { all.push_back(value); });
    return all;
  }
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
TYPED_TEST_SUITE(LockFreeQueues, Reclaimers);

TYPED_TEST(LockFreeQueues, FirstInFirstOut) {
  const std::int64_t before = this->live();
  {
    LockFreeQueue<TypeParam> queue;
    std::int64_t value = 7;
    EXPECT_FALSE(queue.dequeue(value));
    EXPECT_EQ(value, 7) << "an empty queue changes nothing";
    for (int round = 0; round < 300; ++round) {
      for (std::int64_t i = 1; i <= 5; ++i) queue.enqueue(i);
      if (round == 0) {
        EXPECT_EQ(this->contents(queue), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
      }
      EXPECT_EQ(queue.verify().elements, 5U);
      EXPECT_TRUE(queue.verify().holds());
      for (std::int64_t i = 1; i <= 5; ++i) {
        ASSERT_TRUE(queue.dequeue(value));
        ASSERT_EQ(value, i);
      }
      EXPECT_FALSE(queue.dequeue(value));
    }
    EXPECT_EQ(this->live(), before) << "dequeued nodes are freed";
  }
}

TYPED_TEST(LockFreeQueues, NothingIsLostDoubledOrOutOfOrder) {
  constexpr unsigned kThreads = 4;
  const std::int64_t before = this->live();
  LockFreeQueue<TypeParam> queue;
  std::atomic<std::int64_t> sum{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::int64_t last[kThreads] = {}, mine = 0;
      for (std::int64_t i = 1; i <= kEach; ++i) {
        const std::int64_t in = std::int64_t{t} << 32 | i;
        queue.enqueue(in);
        std::int64_t out = 0;
        // Each enqueues before it dequeues: there is always one.
        if (!queue.dequeue(out) || last[out >> 32] >= (out & 0xffffffff)) ++wrong;
        last[out >> 32] = out & 0xffffffff;
        mine += in - out;
      }
      sum += mine;
      this->end_thread();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(sum, 0);
  EXPECT_TRUE(queue.verify().holds());
  EXPECT_EQ(queue.verify().elements, 0U);
  EXPECT_EQ(this->live(), before);
}

#ifdef LOAM_CHECKED
// The others get on, and the node that the stopped one reads is not freed under it (which the address sanitizer sees, and
// the values).
TYPED_TEST(LockFreeQueues, OthersGetOnWhileOneStandsStill) {
  for (const char* const point : {"lock-free queue: the head was read", "lock-free queue: the head is protected",
                                  "lock-free queue: before the head moves", "lock-free queue: the tail was read",
                                  "lock-free queue: the tail is protected", "lock-free queue: between link and tail"}) {
    SCOPED_TRACE(point);
    const std::int64_t before = this->live();
    LockFreeQueue<TypeParam> queue;
    std::int64_t expected = 1, got = 0;
    for (std::int64_t i = 1; i <= 3; ++i) queue.enqueue(i);
    const bool takes = std::string_view(point).find("head") != std::string_view::npos;
    while_standing_still(
        point,
        [&] {
          if (takes)
            queue.dequeue(got);
          else
            queue.enqueue(1'000'000);
          this->end_thread();
        },
        [&] {
          for (std::int64_t i = 4; i <= 5'000; ++i) {
            queue.enqueue(i);
            std::int64_t value = 0;
            if (!queue.dequeue(value)) ADD_FAILURE() << "empty at " << i;
            if (value == 1'000'000) {
              queue.dequeue(value);
            }
            ASSERT_EQ(value, expected++);
          }
        });
    if (takes) {
      EXPECT_EQ(got, expected) << "the oldest of those that were left";
    }
    std::int64_t rest = 0;
    while (queue.dequeue(rest)) {
    }
    EXPECT_EQ(this->live(), before);
  }
}

TYPED_TEST(LockFreeQueues, ADequeueMovesATailThatWasLeftBehind) {
  LockFreeQueue<TypeParam> queue;
  while_standing_still(
      "lock-free queue: between link and tail",
      [&] {
        queue.enqueue(9);
        this->end_thread();
      },
      [&] {
        std::int64_t value = 0;
        EXPECT_TRUE(queue.dequeue(value));
        EXPECT_EQ(value, 9);
        EXPECT_TRUE(queue.verify().holds()) << queue.verify().broken;
      });
  TypeParam::quiesce();
}

// What the design promises about a thread that stands still.
TEST(LockFreeQueue, HazardsBoundWhatAStandingThreadHoldsBack) {
  ByHazards::quiesce();
  const std::int64_t before = PlainAccess::live_blocks();
  LockFreeQueue<ByHazards> queue;
  queue.enqueue(1);
  while_standing_still(
      "lock-free queue: before the head moves",
      [&] {
        std::int64_t value;
        queue.dequeue(value);
        ByHazards::thread_exit();
        PlainAccess::hand_over_counts();
      },
      [&] {
        std::int64_t value;
        for (int i = 0; i < 10'000; ++i) {
          queue.enqueue(i);
          queue.dequeue(value);
        }
        EXPECT_LT(PlainAccess::live_blocks() - before, 200) << "a batch and the two that are named";
      });
  ByHazards::quiesce();
}
#endif

}  // namespace
}  // namespace loam::structures
