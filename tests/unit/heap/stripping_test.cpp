// When the sizes that a program asks for drift: pages of sparse slabs, and blocks in the lists of sizes that nobody
// asks for any more, do not stay.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

constexpr std::size_t kMiB = std::size_t{1} << 20, kFilled = 16 * kMiB, kGrown = 24 * kMiB;

constexpr auto filled_blocks = tests::filled_blocks<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;

// Blocks of another size make the heap grow; it looks at its memory meanwhile.
std::vector<std::byte*> grow(std::size_t bytes) { return filled_blocks(kGrown / bytes, bytes, 0x33); }

std::size_t backed_pages(std::uintptr_t unit) {
  unsigned char resident[kUnitBytes / platform::kPageBytes];
  EXPECT_EQ(mincore(reinterpret_cast<void*>(unit << kUnitShift), kUnitBytes, resident), 0);
  return static_cast<std::size_t>(
      std::count_if(std::begin(resident), std::end(resident), [](unsigned char page) { return (page & 1) != 0; }));
}

// One block in 64 KiB stays of kFilled bytes of blocks of this length; what else there was is freed.
std::vector<std::byte*> sparse(std::size_t bytes) {
  const std::vector<std::byte*> all = filled_blocks(kFilled / bytes, bytes, 0x11);
  std::set<std::uintptr_t> units;
  std::vector<std::byte*> kept, gone;
  for (std::byte* const block : all) (units.insert(unit_of(block)).second ? kept : gone).push_back(block);
  tests::free_all<TestHeap>(gone);
  return kept;
}

class Stripping : public testing::TestWithParam<std::size_t> {};

TEST_P(Stripping, PagesWithoutABlockInUseGoBackAndTheirBlocksServeAgain) {
  const std::size_t bytes = GetParam(), usable = FourPerDoubling::bytes_of(FourPerDoubling::class_of(bytes));
  TestHeap::trim();
  const std::vector<std::byte*> kept = sparse(bytes);
  const std::vector<std::byte*> grown = grow(2000);
  EXPECT_EQ(verified(), "");
  std::set<std::uintptr_t> units;
  for (const std::byte* const block : kept)
    for (std::uintptr_t unit = unit_of(block); unit <= unit_of(block + usable - 1); ++unit) units.insert(unit);
  std::size_t pages = 0;
  for (const std::uintptr_t unit : units) pages += backed_pages(unit);
  EXPECT_LE(pages, kept.size() * (usable / platform::kPageBytes + 2) + 64) << "of " << bytes << " bytes";

  const std::uint64_t before = TestHeap::statistics().slab_bytes;
  const std::vector<std::byte*> again = filled_blocks(kFilled / bytes - kept.size(), bytes, 0x22);
  EXPECT_LE(TestHeap::statistics().slab_bytes, before + 2 * kMiB) << "of " << bytes << " bytes";
  EXPECT_EQ(verified(), "");
  std::map<std::byte*, unsigned char> blocks;
  for (std::byte* const block : kept) EXPECT_TRUE(blocks.emplace(block, 0x11).second);
  for (std::byte* const block : again) EXPECT_TRUE(blocks.emplace(block, 0x22).second);
  const std::byte* end = nullptr;
  for (const auto& [block, value] : blocks) {
    EXPECT_LE(end, block);
    end = block + bytes;
    EXPECT_TRUE(tests::holds(block, bytes, value));
  }
  tests::free_all<TestHeap>(kept);
  tests::free_all<TestHeap>(again);
  tests::free_all<TestHeap>(grown);
  EXPECT_EQ(verified(), "");
}
INSTANTIATE_TEST_SUITE_P(Sizes, Stripping, testing::Values(16, 48, 240, 1000, 1700, 5000, 9000, 20000, 32000));

// Slabs that classes keep although no block of them is in use.
TEST(UnusedLists, AndWholeSlabsThatNobodyAsksForHaveNoMemory) {
  TestHeap::trim();
  std::set<std::uintptr_t> units;
  for (const std::size_t bytes : {300, 3000, 6000, 12000, 24000}) {
    std::vector<std::byte*> blocks = filled_blocks(2 * kMiB / bytes, bytes, 0x11);
    for (const std::byte* const block : blocks) units.insert(unit_of(block));
    tests::free_all<TestHeap>(blocks);
  }
  const std::vector<std::byte*> grown = grow(2000);
  for (const std::byte* const block : grown) units.erase(unit_of(block));
  std::size_t pages = 0;
  for (const std::uintptr_t unit : units) pages += backed_pages(unit);
  EXPECT_LE(pages * platform::kPageBytes, TestHeap::statistics().dirty_bytes + kMiB / 4);
  EXPECT_EQ(verified(), "");
  tests::free_all<TestHeap>(grown);
}

TEST(UnusedLists, DoNotHoldTheirSlabs) {
  TestHeap::trim();
  const std::uint64_t before = TestHeap::statistics().slab_bytes;
  for (const std::size_t bytes : {100, 1500, 4000}) {
    std::vector<std::byte*> blocks = filled_blocks(kFilled / bytes, bytes, 0x11);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    tests::free_all<TestHeap>(blocks);
  }
  const std::vector<std::byte*> grown = grow(2000);
  EXPECT_LE(TestHeap::statistics().slab_bytes, before + kGrown + 5 * kMiB);
  EXPECT_EQ(verified(), "");
  tests::free_all<TestHeap>(grown);
}

TEST(UnusedLists, OfAClassThatIsAskedForSometimesKeepWhatItNeeds) {
  TestHeap::trim();
  const std::uint64_t before = TestHeap::statistics().slab_bytes;
  std::vector<std::byte*> blocks = filled_blocks(kFilled / 1500, 1500, 0x11);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
  tests::free_all<TestHeap>(blocks);
  std::vector<std::byte*> grown;
  for (std::size_t had = 0; had < kGrown; had += 2000) {
    grown.push_back(tests::filled<TestHeap>(2000, 0x33));
    if (had % 50 == 0) TestHeap::deallocate(TestHeap::allocate(1500));
  }
  EXPECT_LE(TestHeap::statistics().slab_bytes, before + kGrown + 5 * kMiB);
  EXPECT_EQ(verified(), "");
  tests::free_all<TestHeap>(grown);
}

}  // namespace
}  // namespace loam::heap
