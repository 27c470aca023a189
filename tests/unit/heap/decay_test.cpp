// When free memory goes back to the system, by a clock that the test sets: ticks, long pauses, and a clock far ahead.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/fork_amid.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace loam::heap {
namespace {

struct ClockedPages : SystemPages {
  static inline std::atomic<std::uint64_t> now{0};
  static std::uint64_t now_ns() noexcept { return now; }
};

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults, ClockedPages>>;
using Spans = TestHeap::Spans;

constexpr std::uint64_t kTick = Spans::kTickNs;

std::uint64_t dirty() { return Spans::dirty_units(); }
void pass(std::uint64_t ns) { ClockedPages::now += ns; }

// Leaves so many units free and dirty, none of which is old yet. A tick has just begun.
void leave_dirty_units(unsigned units) {
  TestHeap::trim();
  pass(2 * kTick);
  Span* const span = Spans::take(units, 1, 1);
  Spans::give(span);
  ASSERT_EQ(dirty(), units);
}

TEST(Decay, NothingGoesBackWithinATickNorWhatWasFreedInTheLast) {
  leave_dirty_units(100);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), 100u) << "freed at this very moment";
  pass(kTick - 1);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), 100u) << "a nanosecond too early";
  pass(1);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), 0u);
}

TEST(Decay, WhatIsFreedBetweenTwoTicksWaitsForTheTickAfter) {
  Span* const later = Spans::take(200, 1, 1);
  leave_dirty_units(50);
  pass(kTick / 2);
  Spans::give(later);
  const std::uint64_t all = dirty();
  ASSERT_EQ(all, 250u);
  pass(kTick / 2);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), all - 50);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), all - 50) << "one tick serves once";
  pass(kTick);
  Spans::decay_if_due(1000);
  EXPECT_EQ(dirty(), 0u);
}

// Eight units after one tick, and twice as many for every further one; after a pause of whatever length all of it.
TEST(Decay, ALongPauseGivesBackAtLeastAsMuchAsAShorterOne) {
  constexpr unsigned kUnits = 1000;
  for (const std::uint64_t ticks :
       {1ull,  2ull,  3ull,  4ull,  7ull,  8ull,  30ull, 31ull,  32ull,      33ull,     34ull,
        60ull, 61ull, 62ull, 63ull, 64ull, 65ull, 66ull, 128ull, 1ull << 20, 1ull << 32}) {
    leave_dirty_units(kUnits);
    pass(ticks * kTick);
    Spans::decay_if_due();
    const std::uint64_t most = std::uint64_t{Spans::kPurgedAtOnce} << std::min<std::uint64_t>(ticks - 1, 20);
    EXPECT_EQ(kUnits - dirty(), std::min<std::uint64_t>(kUnits, most)) << "after " << ticks << " ticks";
  }
}

TEST(Decay, WhoGivesMuchPurgesAsMuch) {
  leave_dirty_units(1000);
  Span* const span = Spans::take(60, 1, 1);  // out of the dirty ones
  ASSERT_EQ(dirty(), 940u);
  pass(kTick);
  Spans::give(span);
  EXPECT_EQ(dirty(), 940u) << "60 came, and 60 of the old ones went";
}

TEST(Decay, TheHelperGivesBackAllThatRests) {
  leave_dirty_units(1000);
  TestHeap::give_what_rests();
  EXPECT_EQ(dirty(), 1000u) << "freed at this very moment";
  pass(kTick);
  TestHeap::give_what_rests();
  EXPECT_EQ(dirty(), 0u) << "not only what a call of the program would give back";
}

// The span belongs to nobody in the child, and is used. If it passed for old free memory, the child would return it to
// the system, also when the thread that takes it is the one that forks.
TEST(Decay, AChildOfAForkTakesNoSpanForOldThatWasBeingTaken) {
  LOAM_NEEDS_POINTS();
  leave_dirty_units(100);
  Span* taken = nullptr;
  const auto in_child = [] {
    if (TestHeap::verify() != nullptr) return 1;
    const std::uint64_t before = TestHeap::statistics().purged_bytes_total, rest = dirty();
    pass(kTick);
    TestHeap::give_what_rests();
    return TestHeap::statistics().purged_bytes_total - before == rest * kUnitBytes ? 0 : 2;
  };
  EXPECT_EQ(tests::fork_amid<TestHeap>("heap.passing_units", [&taken] { taken = Spans::take(40, 1, 1); }, in_child), 0);
  Spans::give(taken);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

// ---- what stays without any further call

constexpr std::size_t kBytes = 32768;
constexpr unsigned kBlocks = 5000;        // 156 MiB: more than twice what may stay
constexpr std::uint64_t kFewUnits = 200;  // what the thread itself keeps, and the last lots

// Allocates and frees them. returns how many units went back to the system
std::uint64_t cycle() {
  const std::uint64_t before = TestHeap::statistics().purged_bytes_total;
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = TestHeap::allocate(kBytes);
  for (void* const block : blocks) TestHeap::deallocate(block);
  return (TestHeap::statistics().purged_bytes_total - before) / kUnitBytes;
}

TEST(DirtyMemory, IsBoundedWithoutAClockAndWithoutAHelper) {
  TestHeap::trim();
  pass(100'000'000'000);
  EXPECT_GT(cycle(), 0u);
  EXPECT_LE(dirty(), Spans::kDirtyMax + kFewUnits);
  EXPECT_GE(dirty(), Spans::kDirtyMax / 2) << "what may stay stays";
  EXPECT_EQ(tests::verified<TestHeap>(), "");
  TestHeap::trim();
}

TEST(DirtyMemory, AProgramThatFreesAndAllocatesInTurnGivesItBackOnce) {
  TestHeap::trim();
  pass(100'000'000'000);
  const std::uint64_t first = cycle();
  EXPECT_GT(first, kFewUnits);
  for (int round = 0; round < 3; ++round) EXPECT_LE(cycle(), kFewUnits) << round;
  // Some time later nobody remembers that it was missed.
  pass(100'000'000'000);
  TestHeap::trim();
  EXPECT_GE(cycle() + kFewUnits, first);
  TestHeap::trim();
}

TEST(DirtyMemory, IsHardlyLeftByAThreadThatEnds) {
  TestHeap::thread_exit();
  TestHeap::trim();
  pass(100'000'000'000);
  tests::in_a_thread<TestHeap>([] { cycle(); });
  EXPECT_LE(dirty(), Spans::kDirtyMaxAtEnd);
  EXPECT_GE(dirty(), Spans::kDirtyMaxAtEnd / 2) << "what may stay stays";
  for (int round = 0; round < 3; ++round) tests::in_a_thread<TestHeap>([] { cycle(); });
  EXPECT_GT(dirty(), Spans::kDirtyMax) << "the threads that follow each other need it";
  pass(100'000'000'000);
  tests::in_a_thread<TestHeap>([] { TestHeap::deallocate(TestHeap::allocate(100)); });
  EXPECT_LE(dirty(), Spans::kDirtyMaxAtEnd) << "the next thread that ends finds that nobody does";
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST(Decay, WhatLongBlocksMayKeepHalvesWithEveryTick) {
  using Kept = KeptMemory<ClockedPages>;
  for (const std::uint64_t ticks : {0ull, 1ull, 2ull, 3ull, 9ull, 10ull, 62ull, 63ull, 64ull, 65ull, 1ull << 30}) {
    Kept kept;
    EXPECT_FALSE(kept.keeps(512, 0)) << "nobody has missed anything yet";
    kept.note_taken(512, 0);  // what has just gone
    EXPECT_TRUE(kept.keeps(512, 0));
    EXPECT_FALSE(kept.keeps(512, 1)) << "not beside what is free already";
    pass(ticks * kTick);
    const std::uint64_t left = ticks < 10 ? 512 >> ticks : 0;
    EXPECT_TRUE(kept.keeps(left, 0)) << ticks;
    EXPECT_FALSE(kept.keeps(left + 1, 0)) << ticks;
  }
}

TEST(Decay, LongBlocksKeepAsMuchAsTheyMissedAndNoMoreThanTheLimit) {
  using Kept = KeptMemory<ClockedPages>;
  Kept kept;
  kept.note_taken(100, 0);
  EXPECT_FALSE(kept.keeps(1, 0)) << "it was given new memory; none had gone back";
  Kept missed;
  EXPECT_FALSE(missed.keeps(100, 0));
  missed.note_taken(30, 0);
  EXPECT_TRUE(missed.keeps(30, 0));
  EXPECT_FALSE(missed.keeps(31, 0));
  for (const std::size_t used : {std::size_t{0}, 3 * Kept::kUnitsMax}) {
    Kept much;
    EXPECT_FALSE(much.keeps(5 * Kept::kUnitsMax, 0));
    much.note_taken(4 * Kept::kUnitsMax, used);
    const std::size_t most = std::max(Kept::kUnitsMax, used);
    EXPECT_TRUE(much.keeps(most, 0));
    EXPECT_FALSE(much.keeps(most + 1, 0));
  }
}

}  // namespace
}  // namespace loam::heap
