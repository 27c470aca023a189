#include "runtime/sync/backoff.hpp"
#include "runtime/sync/barrier.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/sync/thread_slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

namespace loam::sync {
namespace {

TEST(ThreadSlots, GivesTheLowestFreeNumberAndReusesReleasedOnes) {
  ThreadSlots<64> slots;
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(slots.acquire(), i);
  EXPECT_EQ(slots.high_water(), 5u);
  slots.release(3);
  slots.release(1);
  EXPECT_EQ(slots.acquire(), 1u);
  EXPECT_EQ(slots.acquire(), 3u);
  EXPECT_EQ(slots.acquire(), 5u);
  EXPECT_EQ(slots.high_water(), 6u);
}

TEST(ThreadSlots, IsEmptyHandedWhenFullAndNotAfterARelease) {
  ThreadSlots<128> slots;
  for (unsigned i = 0; i < 128; ++i) ASSERT_EQ(slots.acquire(), i);
  EXPECT_EQ(slots.acquire(), std::nullopt);
  slots.release(127);
  EXPECT_EQ(slots.acquire(), 127u);
}

TEST(ThreadSlots, NoTwoThreadsHoldTheSameNumber) {
  ThreadSlots<64> slots;
  std::array<std::atomic<int>, 64> holders{};
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        const unsigned slot = *slots.acquire();
        clashes += holders[slot].fetch_add(1) != 0;
        if (i % 64 == 0) platform::yield();
        holders[slot].fetch_sub(1);
        slots.release(slot);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(clashes.load(), 0);
  EXPECT_LE(slots.high_water(), 6u);
}

TEST(SpinLock, ExcludesAndPublishes) {
  SpinLock lock;
  std::uint64_t plain = 0;  // written under the lock only: the thread sanitizer checks the ordering
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const std::lock_guard guard(lock);
        ++plain;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(plain, 30000u);
}

TEST(SpinLock, TryLockFailsWhileHeld) {
  SpinLock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
}

TEST(Backoff, LetsTheOtherSideRunWhenThreadsOutnumberCores) {
  // 12 waiters and one who must run: with an unbounded spin this would take a scheduler tick per waiter and round.
  std::atomic<int> turn{0};
  constexpr int kThreads = 12, kRounds = 5;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        Backoff backoff;
        while (turn.load(std::memory_order_acquire) != round * kThreads + t) backoff.wait();
        turn.fetch_add(1, std::memory_order_release);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(turn.load(), kThreads * kRounds);
}

TEST(Barrier, EachRoundSeesWhatTheOthersWroteBefore) {
  constexpr unsigned kThreads = 4;
  Barrier barrier(kThreads);
  std::array<int, kThreads> plain{};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int round = 1; round <= 300; ++round) {
        plain[t] = round;
        barrier.arrive_and_wait();
        wrong += std::count(plain.begin(), plain.end(), round) != kThreads;
        barrier.arrive_and_wait();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace loam::sync
