// Large blocks that change their length: in place, by moving pages, or copied.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include "runtime/platform/pages.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

using tests::holds;
constexpr auto filled = tests::filled<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;

TEST(LargeBlocks, OneGrowsInPlaceIntoFreeAddressesBehindIt) {
  std::byte* const first = filled(2 << 20, 1);
  EXPECT_EQ(TestHeap::reallocate(first, 1 << 20), first);
  EXPECT_LT(TestHeap::usable_bytes(first), 2u << 20);
  EXPECT_EQ(TestHeap::reallocate(first, 3 << 19), first);
  EXPECT_GE(TestHeap::usable_bytes(first), 3u << 19);
  EXPECT_TRUE(holds(first, 1 << 20, 1));
  EXPECT_EQ(verified(), "");
  TestHeap::deallocate(first);
}

TEST(LargeBlocks, OneDoesNotGrowIntoItsNeighbour) {
  std::byte* const first = filled(2 << 20, 1);
  EXPECT_EQ(TestHeap::reallocate(first, 1 << 20), first);
  // Whatever is free behind the first one is taken.
  const auto neighbours = tests::filled_blocks<TestHeap>(64, 40000, 2);
  void* const moved = TestHeap::reallocate(first, 2 << 20);
  std::memset(moved, 3, 2 << 20);
  for (std::byte* const block : neighbours) {
    EXPECT_TRUE(holds(block, 40000, 2));
    TestHeap::deallocate(block);
  }
  EXPECT_EQ(verified(), "");
  TestHeap::deallocate(moved);
}

TEST(LargeBlocks, ThoseOfHugePagesGrowInPlaceAsWell) {
  std::byte* block = filled(4 << 20, 1);
  int in_place = 0;
  for (std::size_t bytes = 5 << 20; bytes <= 40 << 20; bytes += 1 << 20) {
    auto* const grown = static_cast<std::byte*>(TestHeap::reallocate(block, bytes));
    in_place += grown == block ? 1 : 0;
    block = grown;
    ASSERT_GE(TestHeap::usable_bytes(block), bytes);
    block[bytes - 1] = std::byte{1};
  }
  EXPECT_GT(in_place, 18) << "of 36 steps";
  EXPECT_TRUE(holds(block, 4 << 20, 1));
  EXPECT_EQ(verified(), "");
  TestHeap::deallocate(block);
}

// A span in small pages, one of huge pages, and a mapping. What a shrunk block leaves is free at once and does not stay.
TEST(LargeBlocks, OneThatShrinksToLittleKeepsLittle) {
  for (const std::size_t from : {std::size_t{2} << 20, std::size_t{16} << 20, std::size_t{100} << 20})
    for (const std::size_t to : {std::size_t{1}, std::size_t{100}, std::size_t{64} << 10}) {
      TestHeap::trim();
      const Statistics before = TestHeap::statistics();
      std::byte* const block = filled(from, 7);
      auto* const shrunk = static_cast<std::byte*>(TestHeap::reallocate(block, to));
      EXPECT_GE(TestHeap::usable_bytes(shrunk), to);
      EXPECT_LT(TestHeap::usable_bytes(shrunk), 2 * to + (64 << 10)) << from << " to " << to;
      EXPECT_TRUE(holds(shrunk, to, 7));
      const Statistics after = TestHeap::statistics();
      EXPECT_LE(after.large_bytes, before.large_bytes + (128 << 10)) << from << " to " << to;
      EXPECT_LE(after.committed_bytes, before.committed_bytes + (256 << 10)) << from << " to " << to;
      EXPECT_EQ(verified(), "");
      TestHeap::deallocate(shrunk);
    }
}

TEST(LargeBlocks, OneThatShrinksByLessThanHalfStays) {
  for (const std::size_t from : {std::size_t{16} << 20, std::size_t{100} << 20}) {
    std::byte* const block = filled(from, 7);
    const std::size_t had = TestHeap::usable_bytes(block);
    EXPECT_EQ(TestHeap::reallocate(block, had / 2 + 4096), block);
    EXPECT_TRUE(holds(block, from / 2, 7));
    auto* const moved = static_cast<std::byte*>(TestHeap::reallocate(block, had / 2 - (1 << 20)));
    EXPECT_LT(TestHeap::usable_bytes(moved), had / 2) << from;
    EXPECT_TRUE(holds(moved, had / 2 - (1 << 20), 7));
    TestHeap::deallocate(moved);
  }
}

TEST(LargeBlocks, AMappingGrowsAndKeepsItsContents) {
  constexpr std::size_t kFrom = 80 << 20, kTo = 130 << 20, kStep = 1 << 20;
  const std::uint64_t before = TestHeap::statistics().large_bytes;
  auto* const block = static_cast<std::byte*>(TestHeap::allocate(kFrom));
  for (std::size_t at = 0; at < kFrom; at += kStep) std::memset(block + at, static_cast<int>(at / kStep), 100);
  auto* const grown = static_cast<std::byte*>(TestHeap::reallocate(block, kTo));
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(TestHeap::usable_bytes(grown), kTo);
  EXPECT_EQ(TestHeap::statistics().large_bytes - before, kTo);
  for (std::size_t at = 0; at < kFrom; at += kStep) EXPECT_TRUE(holds(grown + at, 100, static_cast<int>(at / kStep)));
  EXPECT_TRUE(holds(grown + kFrom, 10 * kStep, 0));
  std::memset(grown, 3, kTo);
  EXPECT_EQ(platform::resident_bytes(block, kFrom), 0u) << "the old addresses are given back";
  EXPECT_EQ(PageMap::at(unit_of(block)), 0u);
  EXPECT_EQ(TestHeap::reallocate(grown, kTo - kStep), grown);
  EXPECT_EQ(verified(), "");
  TestHeap::deallocate(grown);
  EXPECT_EQ(TestHeap::statistics().large_bytes, before);
}

}  // namespace
}  // namespace loam::heap
