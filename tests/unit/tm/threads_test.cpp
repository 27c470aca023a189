// Threads that come and go: slots are reused, what a thread leaves behind is reclaimed by others, destructors of
// thread-local objects may still run transactions, and static constructors may run the first ones.
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

alignas(64) std::uint64_t before_main = 0;

// Before main(), and before any other part of the program has a chance to configure.
const bool kStaticConstructorRan = [] {
  atomically([](auto& tx) { tx.write(before_main, std::uint64_t{42}); });
  return true;
}();

TEST(ThreadsTest, TransactionsRunBeforeMain) {
  EXPECT_TRUE(kStaticConstructorRan);
  EXPECT_EQ(before_main, 42u);
  EXPECT_EQ(shared.map.resident_bytes(), 0u) << "the default algorithm looks at no record while few threads meet";
}

TEST(ThreadsTest, DescriptorsAreReusedAndCountsSurviveTheirThreads) {
  const std::uint64_t before = statistics_of_all().commits;
  std::set<const Descriptor*> seen;
  for (int round = 0; round < 40; ++round)
    std::thread([&] {
      atomically([](auto&) {});
      seen.insert(&Descriptor::current());
    }).join();
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(statistics_of_all().commits, before + 40);
}

TEST(ThreadsTest, AThreadMayLeaveAndComeBack) {
  std::thread([] {
    for (int round = 0; round < 10; ++round) {
      atomically([](auto& tx) { tx.destroy(tx.template create<std::uint64_t>(1u)); });
      thread_exit();
      thread_exit();  // not registered: nothing to do
    }
  }).join();
  EXPECT_EQ(quiesce(), 0u);
  const Statistics all = statistics_of_all();
  EXPECT_EQ(all.blocks_allocated, all.blocks_freed);
}

alignas(64) std::uint64_t farewells = 0;

struct Farewell {
  std::uint64_t amount = 0;
  ~Farewell() {
    // Runs after, or before, the thread has handed its descriptor back; both must work.
    if (amount != 0)
      atomically([&](auto& tx) {
        tx.write(farewells, tx.read(farewells) + amount);
        tx.destroy(tx.template create<std::uint64_t>(1u));
      });
  }
};
thread_local Farewell first_farewell;

TEST(ThreadsTest, TransactionsInThreadLocalDestructors) {
  farewells = 0;
  for (int order = 0; order < 2; ++order) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&] {
        if (order == 0) atomically([](auto&) {});
        first_farewell.amount = 1;
        thread_local Farewell second_farewell;
        second_farewell.amount = 10;
        if (order == 1) atomically([](auto&) {});
      });
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(farewells, 12u * 11);
  EXPECT_EQ(quiesce(), 0u);
  const Statistics all = statistics_of_all();
  EXPECT_EQ(all.blocks_allocated, all.blocks_freed);
}

extern "C" void loam_test_late_transaction(void*) {
  atomically([](auto& tx) { tx.write(farewells, tx.read(farewells) + 1); });
}

TEST(ThreadsTest, TransactionsInKeyDestructorsOfTheThreadLibrary) {
  farewells = 0;
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, loam_test_late_transaction), 0);
  for (int t = 0; t < 3; ++t)
    std::thread([&] {
      atomically([](auto&) {});
      pthread_setspecific(key, &farewells);
    }).join();
  pthread_key_delete(key);
  EXPECT_EQ(farewells, 3u);
  std::thread([] { EXPECT_EQ(Descriptor::current().slot, 1u); }).join();  // no slot was lost
}

TEST(ThreadsTest, MoreThreadsThanCoresOnFewWordsComeToAnEnd) {
  constexpr int kThreads = 14, kRounds = 400;
  alignas(64) static std::uint64_t counter;
  counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        atomically([&](auto& tx) {
          const std::uint64_t value = tx.read(counter);
          if ((i + t) % 50 == 0) platform::yield();
          tx.write(counter, value + 1);
        });
        if (i % 10 == 0) {
          const auto seen = atomically(read_only, [](auto& tx) { return tx.read(counter); });
          ASSERT_GT(seen, 0u);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, static_cast<std::uint64_t>(kThreads) * kRounds);
  const Statistics all = statistics_of_all();
  EXPECT_EQ(all.attempts, all.commits + all.aborts_total());
  std::uint64_t in_histogram = 0;
  for (const auto count : all.histogram()) in_histogram += count;
  EXPECT_EQ(in_histogram, all.commits);
}

TEST(ThreadsTest, AThreadThatExitsWithFreedBlocksLeavesThemToOthers) {
  struct Node {
    std::uint64_t a, b;
  };
  std::vector<Node*> nodes(100);
  for (auto& node : nodes) node = atomically([](auto& tx) { return tx.template create<Node>(); });
  std::atomic<int> stage{0};
  std::thread reader([&] {  // inside throughout: nothing can be freed when the other thread exits
    atomically(read_only, [&](auto& tx) {
      tx.read(before_main);
      stage = 1;
      while (stage != 2) platform::yield();
    });
  });
  while (stage != 1) platform::yield();
  const std::uint64_t freed = statistics_of_all().blocks_freed;
  std::thread([&] {
    for (Node* node : nodes) atomically([&](auto& tx) { tx.destroy(node); });
  }).join();
  EXPECT_EQ(quiesce(), 100u) << "adopted, held back by the reader";
  EXPECT_EQ(statistics_of_all().blocks_freed, freed);
  stage = 2;
  reader.join();
  EXPECT_EQ(quiesce(), 0u);
  EXPECT_EQ(statistics_of_all().blocks_freed, freed + 100);
}

}  // namespace
}  // namespace loam::tm
