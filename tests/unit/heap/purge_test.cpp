// Memory on its way back to the system: what else happens meanwhile.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <thread>

namespace loam::heap {
namespace {

// The system, which takes as long for a purge as a test wants.
struct SlowPages : SystemPages {
  static inline std::atomic<bool> slow{false}, entered{false};
  static void purge(void* start, std::size_t bytes) noexcept {
    if (slow) {
      entered = true;
      while (slow) std::this_thread::yield();
    }
    SystemPages::purge(start, bytes);
  }
};

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults, SlowPages>>;

constexpr std::size_t kBytes = 3 << 20;

// Leaves the memory of a freed block behind: long blocks that come and go have it stay.
void leave_dirty(std::size_t bytes) {
  TestHeap::trim();
  while (TestHeap::statistics().dirty_bytes < bytes) TestHeap::deallocate(tests::filled<TestHeap>(bytes, 1));
}

// A thread that gives the memory of a block back and does not come to an end while this object lives.
class StandingPurge {
 public:
  StandingPurge() {
    leave_dirty(kBytes);
    SlowPages::slow = true;
    thread_ = std::thread([] { TestHeap::trim(); });
    while (!SlowPages::entered) std::this_thread::yield();
  }
  ~StandingPurge() { end(); }
  void end() {
    SlowPages::slow = false;
    if (thread_.joinable()) thread_.join();
    SlowPages::entered = false;
  }

 private:
  std::thread thread_;
};

TEST(Purge, OthersAllocateMeanwhileAndGetOtherUnits) {
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  StandingPurge purge;
  EXPECT_GE(TestHeap::statistics().committed_bytes, before + kBytes) << "a run that is being purged counts as used";
  std::byte* const block = tests::filled<TestHeap>(kBytes, 7);
  TestHeap::trim();  // which does not wait
  purge.end();
  EXPECT_TRUE(tests::holds(block, kBytes, 7));
  TestHeap::deallocate(block);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST(Purge, ACallGivesLittleBackWhereMuchWaits) {
  using Clock = std::chrono::steady_clock;
  using Spans = TestHeap::Spans;
  const std::chrono::nanoseconds tick(Spans::kTickNs);
  const auto purged = [] { return TestHeap::statistics().purged_bytes_total; };
  const auto begun = Clock::now();
  leave_dirty(16 << 20);
  const std::uint64_t before = purged();
  for (int i = 0; i < 2; ++i) {  // the first of these calls may be the one that begins a tick
    std::this_thread::sleep_for(tick * 5 / 4);
    const std::uint64_t so_far = purged();
    Spans::decay_if_due();
    const auto ticks = (Clock::now() - begun) / tick + 1;  // the last tick was one before `begun` at most
    EXPECT_LE(purged() - so_far, (std::uint64_t{Spans::kPurgedAtOnce} << (ticks - 1)) * kUnitBytes);
  }
  EXPECT_GT(purged(), before);
}

TEST(Purge, AChildOfAForkHasTheUnitsAgain) {
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  StandingPurge purge;
  const pid_t child = fork();
  if (child == 0) {
    TestHeap::after_fork_in_child();
    SlowPages::slow = false;
    const bool free = TestHeap::statistics().committed_bytes <= before && TestHeap::verify() == nullptr;
    _exit(free && TestHeap::trim() && TestHeap::statistics().dirty_bytes == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Purge, WhatLongBlocksLeaveGoesBackUnlessTheyComeAgain) {
  TestHeap::trim();
  std::this_thread::sleep_for(std::chrono::nanoseconds(20 * KeptMemory<SlowPages>::kTickNs));
  const std::uint64_t purged = TestHeap::statistics().purged_bytes_total;
  const auto blocks = tests::filled_blocks<TestHeap>(10, kBytes, 1);
  tests::free_all<TestHeap>(blocks);
  EXPECT_LE(TestHeap::statistics().dirty_bytes, kBytes * 2);
  EXPECT_GE(TestHeap::statistics().purged_bytes_total, purged + 8 * kBytes);
  leave_dirty(kBytes);  // which comes to an end
}

TEST(Purge, StatisticsTellWhatWentBackFromWhatWasNeverUsed) {
  TestHeap::trim();
  const Statistics before = TestHeap::statistics();
  EXPECT_LT(before.clean_bytes, before.reserved_bytes / 2) << "most of an area was never used";
  leave_dirty(kBytes);
  TestHeap::trim();
  EXPECT_GE(TestHeap::statistics().clean_bytes, kBytes);
}

}  // namespace
}  // namespace loam::heap
