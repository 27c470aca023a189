#include "structures/queue.hpp"

#include "structures/ordered_access.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <thread>
#include <vector>

namespace loam::structures {
namespace {

std::vector<Queue::Value> contents(const Queue& queue) {
  std::vector<Queue::Value> all;
  queue.for_each([&all](Queue::Value value) { all.push_back(value); });
  return all;
}

TEST(Queue, FirstInFirstOut) {
  Queue queue;
  PlainAccess access;
  Queue::Value value = 7;
  EXPECT_FALSE(queue.dequeue(access, value));
  EXPECT_EQ(value, 7) << "an empty queue changes nothing";
  for (int round = 0; round < 3; ++round) {
    for (Queue::Value i = 1; i <= 5; ++i) queue.enqueue(access, i);
    EXPECT_EQ(contents(queue), (std::vector<Queue::Value>{1, 2, 3, 4, 5}));
    EXPECT_EQ(queue.verify().elements, 5U);
    EXPECT_TRUE(queue.verify().holds());
    for (Queue::Value i = 1; i <= 5; ++i) {
      ASSERT_TRUE(queue.dequeue(access, value));
      EXPECT_EQ(value, i);
    }
    EXPECT_FALSE(queue.dequeue(access, value));
  }
}

TEST(Queue, NodesOfTheCallerAreLinkedAndComeBack) {
  Queue queue;
  PlainAccess access;
  Queue::Value value = 0;
  EXPECT_EQ(queue.unlink(access, value), nullptr);
  const std::int64_t before = PlainAccess::live_blocks();
  Queue::Node* const node = access.create<Queue::Node>(Queue::Value{9}, static_cast<Queue::Node*>(nullptr));
  queue.link(access, node);
  Queue::Node* const dummy = queue.unlink(access, value);
  EXPECT_EQ(value, 9);
  EXPECT_NE(dummy, node) << "the node that held the value is the new dummy";
  access.destroy(dummy);
  EXPECT_EQ(PlainAccess::live_blocks(), before);
}

TEST(Queue, ABrokenTailIsFound) {
  struct Hacked {  // Queue as it lies in memory
    alignas(platform::kApartBytes) Queue::Node* head;
    alignas(platform::kApartBytes) Queue::Node* tail;
  };
  static_assert(sizeof(Hacked) == sizeof(Queue));
  Queue queue;
  PlainAccess access;
  queue.enqueue(access, 1);
  auto& hacked = reinterpret_cast<Hacked&>(queue);
  Queue::Node* const tail = hacked.tail;
  hacked.tail = hacked.head;
  EXPECT_EQ(queue.verify().broken, "Q1: links lead to the tail");
  hacked.tail = tail;
}

// One thread at each end, nothing between them but the link.
TEST(Queue, BothEndsMayBeUsedAtOnce) {
  Queue queue;
  constexpr Queue::Value kCount = 100'000;
  std::thread producer([&queue] {
    OrderedAccess access;
    for (Queue::Value i = 1; i <= kCount; ++i) queue.enqueue(access, i);
  });
  OrderedAccess access;
  Queue::Value expected = 1;
  while (expected <= kCount) {
    Queue::Value value = 0;
    if (!queue.dequeue(access, value)) {
      std::this_thread::yield();
      continue;
    }
    if (value != expected) break;
    ++expected;
  }
  producer.join();
  EXPECT_EQ(expected, kCount + 1);
}

}  // namespace
}  // namespace loam::structures
