// OwnedLock, and what the child of a fork can tell of it.
#include "runtime/sync/owned_lock.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace loam::sync {
namespace {

TEST(OwnedLock, ExcludesAndPublishes) {
  OwnedLock lock;
  std::uint64_t plain = 0;  // written under the lock only: the thread sanitizer checks the ordering
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const std::lock_guard guard(lock);
        ++plain;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(plain, 12000u);
}

TEST(OwnedLock, OneThatTheForkingThreadHoldsIsNoOrphan) {
  OwnedLock lock;
  EXPECT_FALSE(lock.is_orphaned());
  const std::lock_guard guard(lock);
  EXPECT_FALSE(lock.try_lock());
  tests::in_child([&lock] {
    EXPECT_FALSE(lock.is_orphaned());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
  });
}

TEST(OwnedLock, OneThatAnotherThreadHeldIsAnOrphanInTheChild) {
  OwnedLock lock;
  std::atomic<bool> held{false}, over{false};
  std::thread holder([&] {
    const std::lock_guard guard(lock);
    held = true;
    while (!over) platform::yield();
  });
  while (!held) platform::yield();
  tests::in_child([&lock] {
    EXPECT_TRUE(lock.is_orphaned());
    lock.unlock();
    EXPECT_FALSE(lock.is_orphaned());
    EXPECT_TRUE(lock.try_lock());
  });
  over = true;
  holder.join();
}

}  // namespace
}  // namespace loam::sync
