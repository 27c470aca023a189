// Slices: which of them count, and what the rate is of. The segments are made up; the first test with a real team shows
// that a loop closes them.
#include "workloads/harness/slices.hpp"
#include "workloads/harness/team.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <vector>

namespace loam::tests {
namespace {

using workloads::rate_of;
using workloads::Segment;
using workloads::SlicedRate;
using workloads::SliceRow;

constexpr std::uint64_t kSlice = workloads::kSliceNs, kMicro = 1000;
// Somewhere within a slice: the first and the last are never whole.
constexpr std::uint64_t kStart = 1000 * kSlice + 300 * kMicro;
constexpr std::uint64_t kOperations = 500;  // per slice

using Thread = std::vector<Segment>;

// A thread that works through `slices` whole slices and a part before them, at `rate` operations per slice, and looks
// at the clock 20 us after each boundary.
Thread steady(std::size_t slices, std::uint64_t rate = kOperations) {
  Thread thread;
  std::uint64_t begin = kStart;
  for (std::size_t i = 0; i <= slices; ++i) {
    const std::uint64_t end = (begin / kSlice + 1) * kSlice + 20 * kMicro;
    thread.push_back({begin, end, rate * (end - begin) / kSlice, 0});
    begin = end + kMicro;
  }
  return thread;
}

SlicedRate rate(const std::vector<Thread>& threads, std::span<SliceRow> rows = {}) {
  std::vector<std::span<const Segment>> spans(threads.begin(), threads.end());
  return rate_of(spans, kSlice, rows);
}

// Operations per slice and thread.
double speed(const SlicedRate& found) {
  return static_cast<double>(found.operations) / found.thread_s * 1e-9 * static_cast<double>(kSlice);
}

// From segment i on, `count` segments become one of the same operations, in which the thread waited most of the time.
void wait_through(Thread& thread, std::size_t i, std::size_t count) {
  thread[i].end_ns = thread[i + count - 1].end_ns;
  thread[i].waited_ns = (thread[i].end_ns - thread[i].begin_ns) / 2;
  thread.erase(thread.begin() + static_cast<std::ptrdiff_t>(i) + 1,
               thread.begin() + static_cast<std::ptrdiff_t>(i + count));
}

TEST(Slices, AllCountWhereNobodyWaits) {
  const auto found = rate({steady(40), steady(40, 2 * kOperations)});
  EXPECT_EQ(found.slices, 40u);
  EXPECT_EQ(found.kept, 40u);
  EXPECT_TRUE(found.is_enough());
  EXPECT_NEAR(speed(found), 1.5 * kOperations, 2);
  EXPECT_NEAR(found.fairness, 0.5, 0.01);
  EXPECT_NEAR(found.thread_s, 2 * 40e-3, 0.2e-3);
}

TEST(Slices, OneThatWaitsCostsAllThreadsTheSlice) {
  std::vector<Thread> threads{steady(40), steady(40)};
  threads[0][11].waited_ns = kSlice / 4;
  threads[0][11].operations = 0;
  threads[1][11].operations = 100 * kOperations;  // alone it was fast: of no interest
  const auto found = rate(threads);
  EXPECT_EQ(found.kept, 39u);
  EXPECT_NEAR(speed(found), kOperations, 2);
}

TEST(Slices, AWaitOverSeveralCostsEachOfThem) {
  std::vector<Thread> threads{steady(40), steady(40)};
  wait_through(threads[1], 10, 5);
  for (std::size_t i = 10; i < 15; ++i) threads[0][i].operations = 100 * kOperations;
  std::vector<SliceRow> rows(64);
  const auto found = rate(threads, rows);
  EXPECT_EQ(found.slices, 40u);
  EXPECT_EQ(found.kept, 35u);
  EXPECT_NEAR(speed(found), kOperations, 2);
  // Segment i ends with slice i - 1: the first one ends where the first whole slice begins.
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(rows[i].kept, i < 9 || i >= 14) << i;
  EXPECT_EQ(rows[9].waited_ns, threads[1][10].waited_ns);
}

TEST(Slices, AWaitThatEndsInTheNextSliceCostsThatOneToo) {
  std::vector<Thread> threads{steady(40), steady(40)};
  threads[0][10].end_ns += kSlice / 2;
  threads[0][10].waited_ns = kSlice / 2;
  threads[0][11].begin_ns = threads[0][10].end_ns + kMicro;
  EXPECT_EQ(rate(threads).kept, 38u);
}

TEST(Slices, AWaitBetweenTwoSegmentsCounts) {
  // The thread lost its processor between its stamp and the reading of the kernel's count.
  std::vector<Thread> threads{steady(40), steady(40)};
  threads[0][10].waited_ns = kSlice;
  threads[0].erase(threads[0].begin() + 11);
  threads[1][11].operations = 100 * kOperations;
  const auto found = rate(threads);
  EXPECT_EQ(found.kept, 38u);
  EXPECT_NEAR(speed(found), kOperations, 2);
}

TEST(Slices, MicrosecondsOfWaitingAreEverywhere) {
  std::vector<Thread> threads{steady(40)};
  threads[0][10].waited_ns = kSlice / 100;
  EXPECT_EQ(rate(threads).kept, 40u);
  threads[0][10].waited_ns = kSlice / 40;
  EXPECT_EQ(rate(threads).kept, 39u);
}

TEST(Slices, LongOperationsSpanSeveral) {
  // One thread whose operations take 2.5 slices beside one whose operations are short.
  std::vector<Thread> threads{steady(60), {}};
  for (std::uint64_t begin = kStart; begin < kStart + 58 * kSlice; begin += 5 * kSlice / 2)
    threads[1].push_back({begin, begin + 5 * kSlice / 2, 1, 0});
  EXPECT_EQ(rate(threads).kept, rate(threads).slices);
  const auto all = rate(threads);
  threads[0][20].waited_ns = kSlice;
  const auto found = rate(threads);
  EXPECT_EQ(found.kept, all.kept - 1);
  // The long operations that end or begin in it are left out whole, and their time with them.
  EXPECT_NEAR(static_cast<double>(all.operations - found.operations), kOperations + 1, 2);
  EXPECT_NEAR(all.thread_s - found.thread_s, 1e-9 * (1 + 2 * 2.5) * static_cast<double>(kSlice), 0.1e-3);
}

TEST(Slices, TooFewAreNotEnough) {
  std::vector<Thread> threads{steady(40), steady(40)};
  wait_through(threads[0], 5, 32);
  EXPECT_EQ(rate(threads).kept, 8u);
  EXPECT_FALSE(rate(threads).is_enough());
  // A twentieth of a long run is enough, less is not, however many they are.
  std::vector<Thread> longer{steady(400)};
  wait_through(longer[0], 16, 385 - 1);
  EXPECT_EQ(rate(longer).kept, 16u);
  EXPECT_FALSE(rate(longer).is_enough());
}

TEST(Slices, ThreadsThatNeverWorkTogetherAreRatedByTheirOwn) {
  // They take turns: one waits in the first half of each eight slices, the other in the second.
  std::vector<Thread> threads{steady(80, kOperations), steady(80, 3 * kOperations)};
  for (const std::size_t thread : {0u, 1u})
    for (std::size_t i = 1; i < 80; ++i)
      if ((i / 4) % 2 == thread) threads[thread][i].waited_ns = kSlice;
  const auto found = rate(threads);
  EXPECT_LT(found.kept, 4u);
  EXPECT_FALSE(found.is_enough());
  EXPECT_TRUE(found.is_enough_by_own());
  EXPECT_NEAR(found.own_per_s * 1e-9 * static_cast<double>(kSlice), 4 * kOperations, 10);
  EXPECT_NEAR(static_cast<double>(found.own_kept), 40, 4);
}

TEST(Slices, NothingIsKnownOfAThreadWithoutSegments) {
  EXPECT_FALSE(rate({steady(40), {}}).is_enough());
  EXPECT_FALSE(rate({steady(40), {}}).is_enough_by_own());
  EXPECT_FALSE(rate({}).is_enough());
}

// Each operation of one thread reaches into a slice in which it waited, so that none counts, although slices are kept.
TEST(Slices, NothingIsKnownOfAThreadOfWhichNoOperationCounts) {
  std::vector<Thread> threads{steady(80), {}};
  for (std::uint64_t begin = kStart, i = 0; begin < kStart + 78 * kSlice; begin += 3 * kSlice, ++i) {
    const std::uint64_t end = begin + 3 * kSlice;
    threads[1].push_back({begin, begin + kSlice / 2, 1, kSlice / 4});
    threads[1].push_back({begin + kSlice / 2 + kMicro, end - kMicro, 1, 0});
  }
  std::vector<SliceRow> rows(128);
  const auto found = rate(threads, rows);
  EXPECT_GT(std::count_if(rows.begin(), rows.end(), [](const SliceRow& row) { return row.kept; }), 16);
  EXPECT_EQ(found.kept, 0u);
  EXPECT_FALSE(found.is_enough());
}

TEST(Slices, LengthFollowsTheRunsOnlyWhereItIsVeryLong) {
  using workloads::slice_ns_of;
  EXPECT_EQ(slice_ns_of(5 * kSlice), kSlice);
  EXPECT_EQ(slice_ns_of(workloads::kSlicesMax * kSlice), kSlice);
  EXPECT_EQ(slice_ns_of(workloads::kSlicesMax * kSlice + 1), 2 * kSlice);
  EXPECT_EQ(slice_ns_of(3'600'000 * kSlice), 220 * kSlice);
}

workloads::Options options_of(unsigned threads, std::uint32_t warmup_ms) {
  workloads::Options options;
  options.threads = threads;
  options.warmup_ms = warmup_ms;
  options.cpu_list[0] = platform::topology().cpus()[0].number;
  options.cpu_count = 1;
  return options;
}

TEST(Slices, ALoopThatAsksItsPaceHasThem) {
  const auto options = options_of(1, 10);
  workloads::Team team(options, 100);
  std::uint64_t operations = 0;
  auto work = [&](workloads::Team::Member& member) {
    const auto loop = [](workloads::Pace& pace) {
      volatile std::uint64_t done = 0;
      while (pace.goes_on(done)) done = done + 1;
      return std::uint64_t{done};
    };
    member.wait_for_start();
    loop(member.warm_up());
    member.timed([&](workloads::Pace& pace) { operations = loop(pace); });
  };
  team.run(work);
  const auto found = team.rate(operations);
  if (!team.run_delay_s()) GTEST_SKIP() << "this kernel does not count run delay";
  ASSERT_TRUE(found.sliced);
  EXPECT_LE(found.sliced->kept, found.sliced->slices);
  EXPECT_LE(static_cast<double>(found.sliced->slices), 1000 * team.elapsed_s() + 1);
  EXPECT_LE(found.sliced->operations, operations);
  if (found.sliced->is_enough()) {
    EXPECT_NEAR(found.sliced->thread_s, 1e-3 * static_cast<double>(found.sliced->kept), 5e-3);
    EXPECT_GT(found.sliced->operations, 0u);
    EXPECT_LE(found.s, team.elapsed_s());
  } else if (found.by == workloads::Team::Rate::By::run) {
    EXPECT_EQ(found.operations, static_cast<double>(operations));
    EXPECT_EQ(found.s, team.elapsed_s());
  }
}

TEST(Slices, FixedWorkStaysWhole) {
  const auto options = options_of(1, 10);
  workloads::Team team(options, 0);
  constexpr std::uint64_t kLimit = 12'345'678;
  std::uint64_t warmed = 0, operations = 0;
  auto work = [&](workloads::Team::Member& member) {
    member.wait_for_start();
    while (member.warm_up().goes_on(warmed)) ++warmed;
    member.timed(
        [&](workloads::Pace& pace) {
          while (pace.goes_on(operations)) ++operations;
        },
        kLimit);
  };
  team.run(work);
  EXPECT_EQ(warmed, 0u);
  EXPECT_EQ(operations, kLimit);
  const auto found = team.rate(operations);
  EXPECT_FALSE(found.sliced);
  EXPECT_EQ(found.operations, static_cast<double>(kLimit));
  EXPECT_EQ(found.s, team.elapsed_s());
}

}  // namespace
}  // namespace loam::tests
