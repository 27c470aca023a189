// Hardware attempts and their fallback: what follows from an abort's status, and that both paths exclude each other.
#include "runtime/tm/hardware/elision.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/tm/hardware/availability.hpp"
#include "tests/harness/instrumented.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace loam::tm::hardware {
namespace {

using platform::kAbortCapacity;
using platform::kAbortConflict;
using platform::kAbortExplicit;
using platform::kAbortRetry;

constexpr unsigned kTaken = kAbortExplicit | unsigned{kFallbackTaken} << 24;
constexpr unsigned kPoolHeldByAThief = kAbortExplicit | unsigned{platform::kPoolHeld} << 24;

TEST(Policy, AStatusHasOneCause) {
  EXPECT_EQ(cause_of(kAbortConflict | kAbortRetry), AbortCause::unknown);
  EXPECT_EQ(cause_of(kAbortCapacity), AbortCause::capacity);
  EXPECT_EQ(cause_of(0), AbortCause::interrupt);
  EXPECT_EQ(cause_of(kTaken), AbortCause::fallback);
  EXPECT_EQ(cause_of(kPoolHeldByAThief), AbortCause::fallback);
  EXPECT_EQ(cause_of(kAbortExplicit | 1u << 24), AbortCause::explicit_);
}

TEST(Policy, AConflictIsTriedEightTimesAndNothingElseAgain) {
  for (unsigned tries = 1; tries < 8; ++tries) {
    EXPECT_EQ(next_after(kAbortConflict | kAbortRetry, tries), Next::try_again) << tries;
    EXPECT_EQ(next_after(kTaken, tries), Next::wait_and_try_again) << tries;
    EXPECT_EQ(next_after(kPoolHeldByAThief, tries), Next::wait_and_try_again) << tries;
  }
  EXPECT_EQ(next_after(kAbortConflict, 8), Next::fall_back);
  EXPECT_EQ(next_after(kTaken, 8), Next::fall_back);
  EXPECT_EQ(next_after(kAbortCapacity, 1), Next::fall_back);
  EXPECT_EQ(next_after(0, 1), Next::fall_back);
}

class Elision : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tests::kInstrumented) GTEST_SKIP() << "the sanitizer's calls abort every transaction";
    if (!available()) GTEST_SKIP() << reason_against();
  }
};

constexpr int kThreads = 4, kTimes = 2'000;

TEST_F(Elision, SectionsInHardwareAndUnderTheLockExcludeOneAnother) {
  FallbackLock lock;
  struct alignas(64) Counter {
    long value = 0;
  } left, right;
  std::atomic<std::uint64_t> hardware{0}, serialised{0}, commits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Statistics mine;
      for (int n = 0; n < kTimes; ++n)
        elide(lock, mine, [&] {
          // Some cannot be a transaction: they take the lock, read at once, and stay in the section. The attempts of the
          // others are under way for a while before they touch anything, so that some began before the lock was taken.
          const bool stays = (n + i) % 16 == 0;
          for (volatile int spin = 0; !stays && spin < 1000;) spin = spin + 1;
          const long seen = left.value;
          if (stays) platform::sleep_ns(1);
          left.value = seen + 1;
          right.value += 1;
          return 0;
        });
      hardware += mine.hardware;
      serialised += mine.serialised;
      commits += mine.commits;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(left.value, long{kThreads} * kTimes);
  EXPECT_EQ(right.value, left.value);
  EXPECT_EQ(commits, std::uint64_t{kThreads} * kTimes);
  EXPECT_EQ(hardware + serialised, commits);
  EXPECT_GE(serialised, commits / 16);
  EXPECT_GT(hardware, commits / 2);
}

TEST_F(Elision, AnAbortedAttemptLeavesNoTraceButItsCount) {
  FallbackLock lock;
  Statistics mine;
  int runs_outside = 0;
  const int result = elide(lock, mine, [&] {
    ++runs_outside;
    platform::thread_id();  // a system call
    return 5;
  });
  EXPECT_EQ(result, 5);
  EXPECT_EQ(runs_outside, 1);
  EXPECT_EQ(mine.commits, 1u);
  EXPECT_EQ(mine.hardware, 0u);
  EXPECT_EQ(mine.serialised, 1u);
  EXPECT_EQ(mine.aborts_total(), 1u);
  EXPECT_FALSE(lock.held());
}

// T9: the first touch of a page, and the first call of a library's function that is bound lazily, abort with status 0, and
// would for ever: a page or a symbol of an aborted attempt never was. The run under the lock is the cure.
TEST_F(Elision, WhatARunOutsideHasTouchedAndBoundCommitsInHardware) {
  FallbackLock lock;
  Statistics mine;
  auto* const page = static_cast<long*>(platform::map_lazy(platform::kPageBytes, {.huge_pages = false}));
  ASSERT_NE(page, nullptr);
  const auto run = [&] {
    const std::uint64_t before = mine.hardware;
    elide(lock, mine, [&] {
      *page += 1;
      return ::strverscmp("1.10", "1.9");
    });
    return mine.hardware > before;
  };
  EXPECT_FALSE(run());
  EXPECT_EQ(mine.serialised, 1u);
  EXPECT_GT(mine.aborts[static_cast<std::size_t>(AbortCause::interrupt)], 0u);
  int in_hardware = 0;
  for (int i = 0; i < 100; ++i) in_hardware += run() ? 1 : 0;
  EXPECT_GT(in_hardware, 50);  // timers abort as well
  EXPECT_EQ(*page, 101);
  platform::unmap(page, platform::kPageBytes);
}

}  // namespace
}  // namespace loam::tm::hardware
