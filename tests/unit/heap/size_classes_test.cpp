#include "runtime/heap/size_classes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace loam::heap {
namespace {

using Classes = FourPerDoubling;

TEST(SizeClasses, EveryRequestGetsTheShortestPlainClassThatHoldsIt) {
  for (std::size_t n = 0; n <= Classes::kMax; ++n) {
    const unsigned c = Classes::class_of(n);
    ASSERT_LT(c, Classes::kPlain);
    ASSERT_GE(Classes::bytes_of(c), n);
    if (c > 0) {
      ASSERT_LT(Classes::bytes_of(c - 1), n);
    }
  }
}

TEST(SizeClasses, TheTableOfAThreadHeapSaysTheSame) {
  for (std::size_t n = 0; n <= Classes::kSmallMax; ++n)
    ASSERT_EQ(Classes::small_slots()[(n + kBlockAlignment - 1) / kBlockAlignment], Classes::class_of(n)) << n;
}

TEST(SizeClasses, BlocksKeepTheAlignmentOfEverything) {
  for (unsigned c = 0; c < Classes::kClasses; ++c) EXPECT_EQ(Classes::bytes_of(c) % kBlockAlignment, 0u) << c;
}

TEST(SizeClasses, AtMostAFifthOfABlockIsUnusedAbove64Bytes) {
  for (std::size_t n = 65; n <= Classes::kMax; ++n)
    ASSERT_LE(static_cast<double>(Classes::bytes_of(Classes::class_of(n)) - n),
              0.2 * static_cast<double>(Classes::bytes_of(Classes::class_of(n))))
        << n;
}

// Blocks whose stride is an odd number of lines visit every set of the first-level cache before one comes again.
TEST(SizeClasses, LongBlocksSpreadOverAllCacheSets) {
  constexpr unsigned kSets = 64;
  for (unsigned c = 0; c < Classes::kPlain; ++c) {
    if (Classes::bytes_of(c) < 1024) continue;
    std::set<std::size_t> sets;
    for (std::size_t i = 0; i < kSets; ++i) sets.insert(i * Classes::bytes_of(c) / platform::kCacheLineBytes % kSets);
    EXPECT_EQ(sets.size(), kSets) << Classes::bytes_of(c);
  }
}

TEST(SizeClasses, AlignedRequestsGetBlocksThatAreMultiplesOfTheAlignment) {
  for (std::size_t alignment = 32; alignment <= 16384; alignment *= 2)
    for (std::size_t n : {std::size_t{1}, alignment - 1, alignment, alignment + 1, 3 * alignment, std::size_t{5000}}) {
      const unsigned c = Classes::class_aligned(alignment, n);
      if (c == Classes::kClasses) {
        EXPECT_GT(std::max(alignment, n), 8192u);
        continue;
      }
      EXPECT_GE(Classes::bytes_of(c), n);
      EXPECT_EQ(Classes::bytes_of(c) % alignment, 0u);
      // A plain slab begins at a multiple of a line, a natural one at a multiple of its unit.
      EXPECT_TRUE(Classes::is_natural(c) || alignment <= platform::kCacheLineBytes);
    }
  EXPECT_EQ(Classes::class_aligned(32768, 1), Classes::kClasses);
}

TEST(SizeClasses, ASlabHoldsAtLeastSevenBlocks) {
  for (unsigned c = 0; c < Classes::kClasses; ++c)
    EXPECT_GE((Classes::units_of(c) * kUnitBytes - kColourBytesMax) / Classes::bytes_of(c), 7u) << Classes::bytes_of(c);
}

TEST(Colours, SlabsThatRunTogetherBeginOnDifferentSetsAndRecords) {
  constexpr std::uintptr_t kFirst = 0x12340000;
  constexpr std::uintptr_t kRecords = 1u << 20, kRecordBytes = 32, kSets = 64;
  for (std::uintptr_t i = 0; i < 64; ++i)
    for (std::uintptr_t j = i + 1; j < i + kColours; ++j) EXPECT_NE(colour_of(kFirst + i), colour_of(kFirst + j));
  for (std::uintptr_t areas = 1; areas < kColours; ++areas) {
    const std::uintptr_t far = kFirst + areas * (kRecords * kRecordBytes / kUnitBytes);
    const auto record = [](std::uintptr_t unit) {
      return (unit * kUnitBytes + colour_of(unit)) / kRecordBytes % kRecords;
    };
    const auto set = [](std::uintptr_t unit) { return colour_of(unit) / platform::kCacheLineBytes % kSets; };
    EXPECT_NE(record(kFirst), record(far)) << areas;
    EXPECT_NE(set(kFirst), set(far)) << areas;
  }
}

}  // namespace
}  // namespace loam::heap
