// Blocks that are freed for a thread which sleeps: another thread allocates from them in place of new memory.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using Blocks = std::vector<std::byte*>;

constexpr std::size_t kBytes = 700, kCount = 24000;  // 16 MiB
constexpr auto free_all = tests::free_all<TestHeap>;
Blocks some(std::size_t count = kCount) { return tests::filled_blocks<TestHeap>(count, kBytes, 3); }
std::uint64_t slab_bytes() { return TestHeap::statistics().slab_bytes; }

// A thread that makes blocks and sleeps until it is told to go on.
class Sleeper {
 public:
  explicit Sleeper(std::size_t count) {
    thread_ = std::thread([this, count] {
      blocks = some(count);
      made_ = true;
      while (!awake_) platform::yield();
      again = some(count);
      free_all(again);
      TestHeap::thread_exit();
    });
    while (!made_) platform::yield();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { wake(); }
  void wake() {
    awake_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Blocks blocks, again;

 private:
  std::atomic<bool> made_{false}, awake_{false};
  std::thread thread_;
};

void expect_nothing_is_in_use() {
  TestHeap::trim();
  TestHeap::thread_exit();
  EXPECT_EQ(tests::verified<TestHeap>(), "");
  EXPECT_EQ(TestHeap::statistics().committed_bytes, 0u);
}

TEST(Claimed, WhatIsFreedForAThreadThatSleepsServesWhoFreedIt) {
  Sleeper sleeper(kCount);
  const std::uint64_t before = slab_bytes();
  const std::set<std::byte*> known(sleeper.blocks.begin(), sleeper.blocks.end());
  free_all(sleeper.blocks);
  for (int round = 0; round < 3; ++round) {
    const Blocks own = some();
    std::size_t again = 0;
    for (std::byte* const block : own) {
      EXPECT_TRUE(tests::holds(block, kBytes, 3));
      again += known.contains(block) ? 1 : 0;
    }
    EXPECT_EQ(std::set<std::byte*>(own.begin(), own.end()).size(), kCount) << "none twice";
    EXPECT_GE(again * kBytes, kCount * kBytes - (4u << 20)) << round;
    EXPECT_LE(slab_bytes(), before + (4u << 20)) << round;
    EXPECT_EQ(tests::verified<TestHeap>(), "");
    free_all(own);
  }
  sleeper.wake();
  expect_nothing_is_in_use();
}

// What was freed by a third thread, which has ended.
TEST(Claimed, WhoClaimsNeedNotHaveFreed) {
  Sleeper sleeper(kCount);
  const std::uint64_t before = slab_bytes();
  tests::in_a_thread<TestHeap>([&] { free_all(sleeper.blocks); });
  const Blocks own = some();
  EXPECT_LE(slab_bytes(), before + (4u << 20));
  free_all(own);
  sleeper.wake();
  expect_nothing_is_in_use();
}

// A thread that takes its blocks in loses none to others.
TEST(Claimed, AnInboxThatHoldsLittleIsLeftToItsOwner) {
  constexpr std::size_t kFew = 1000;  // 700 kB
  Sleeper sleeper(kFew);
  const std::set<std::byte*> known(sleeper.blocks.begin(), sleeper.blocks.end());
  tests::in_a_thread<TestHeap>([&] { free_all(sleeper.blocks); });
  const Blocks own = some(kFew);
  for (std::byte* const block : own) EXPECT_FALSE(known.contains(block));
  free_all(own);
  sleeper.wake();
  std::size_t again = 0;
  for (std::byte* const block : sleeper.again) again += known.contains(block) ? 1 : 0;
  EXPECT_GE(again, kFew / 2);
  expect_nothing_is_in_use();
}

// Much came in all, but the owner has taken it.
TEST(Claimed, AnInboxThatWasEmptiedIsLeftToItsOwnerAgain) {
  constexpr std::ptrdiff_t kFew = 1000;  // 700 kB
  enum class Stage { making, made, wanted, made_again, over };
  std::atomic<Stage> stage{Stage::making};
  const auto wait_for = [&stage](Stage wanted) {
    while (stage != wanted) platform::yield();
  };
  Blocks blocks;
  std::thread owner([&] {
    blocks = some();
    stage = Stage::made;
    wait_for(Stage::wanted);
    blocks = some();
    stage = Stage::made_again;
    wait_for(Stage::over);
    TestHeap::thread_exit();
  });
  wait_for(Stage::made);
  tests::in_a_thread<TestHeap>([&] { free_all(blocks); });
  stage = Stage::wanted;
  wait_for(Stage::made_again);
  const Blocks few(blocks.begin(), blocks.begin() + kFew), rest(blocks.begin() + kFew, blocks.end());
  tests::in_a_thread<TestHeap>([&] { free_all(few); });
  const std::set<std::byte*> known(few.begin(), few.end());
  const Blocks own = some(kFew);
  for (std::byte* const block : own) EXPECT_FALSE(known.contains(block));
  free_all(own);
  free_all(rest);
  stage = Stage::over;
  owner.join();
  expect_nothing_is_in_use();
}

// What a thread has claimed and does not need goes back: at the latest when it ends.
TEST(Claimed, WhatIsNotUsedGoesBackToItsOwner) {
  Sleeper sleeper(kCount);
  free_all(sleeper.blocks);
  const std::uint64_t before = slab_bytes();
  tests::in_a_thread<TestHeap>([] { TestHeap::deallocate(TestHeap::allocate(kBytes)); });
  EXPECT_LE(slab_bytes(), before + (1u << 20));
  const std::set<std::byte*> known(sleeper.blocks.begin(), sleeper.blocks.end());
  sleeper.wake();
  std::size_t again = 0;
  for (std::byte* const block : sleeper.again) again += known.contains(block) ? 1 : 0;
  EXPECT_GE(again * kBytes, kCount * kBytes - (4u << 20));
  expect_nothing_is_in_use();
}

// In the child of a fork the sleeper is gone, and its blocks serve.
TEST(Claimed, AChildUsesWhatLiesInTheInboxesOfLostHeaps) {
  Sleeper sleeper(kCount);
  free_all(sleeper.blocks);
  tests::in_child([] {
    TestHeap::after_fork_in_child();
    const std::uint64_t before = slab_bytes();
    const Blocks own = some();
    EXPECT_LE(slab_bytes(), before + (4u << 20));
    EXPECT_EQ(tests::verified<TestHeap>(), "");
    free_all(own);
    EXPECT_EQ(tests::verified<TestHeap>(), "");
  });
  sleeper.wake();
  expect_nothing_is_in_use();
}

// Threads free for one that sleeps, and claim, at the same time.
TEST(Claimed, ThreadsThatClaimAtTheSameTimeGetEachBlockOnce) {
  constexpr unsigned kThreads = 4;
  Sleeper sleeper(kCount);
  for (int round = 0; round < 4; ++round) {
    std::vector<Blocks> got(kThreads);
    std::vector<std::thread> threads;
    const Blocks& old = sleeper.blocks;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        free_all(Blocks(old.begin() + t * kCount / kThreads, old.begin() + (t + 1) * kCount / kThreads));
        got[t] = some(kCount / kThreads);
        TestHeap::thread_exit();
      });
    for (auto& thread : threads) thread.join();
    Blocks all;
    for (const Blocks& some : got) all.insert(all.end(), some.begin(), some.end());
    EXPECT_EQ(std::set<std::byte*>(all.begin(), all.end()).size(), kCount);
    EXPECT_EQ(tests::verified<TestHeap>(), "");
    sleeper.blocks = all;
  }
  free_all(sleeper.blocks);
  sleeper.wake();
  expect_nothing_is_in_use();
}

}  // namespace
}  // namespace loam::heap
