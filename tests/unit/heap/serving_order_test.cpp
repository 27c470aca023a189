// Heaps whose short blocks serve in the order of their addresses.
#include "runtime/base/random.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults, SystemPages, ServingOrder::by_address>>;
constexpr auto verified = tests::verified<TestHeap>;

std::vector<std::byte*> allocated(std::size_t count, std::size_t bytes) {
  return tests::filled_blocks<TestHeap>(count, bytes, 7);
}

void shuffle(std::vector<std::byte*>& blocks, std::uint64_t seed) {
  std::shuffle(blocks.begin(), blocks.end(), base::Random(seed));
}

// Neighbours in the order of serving of which the second lies above the first, of a hundred.
std::size_t ascents(const std::vector<std::byte*>& blocks) {
  std::size_t found = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i) found += blocks[i - 1] < blocks[i] ? 1 : 0;
  return 100 * found / (blocks.size() - 1);
}

TEST(ServingOrder, PlacesBecomeAListTheLowestFirst) {
  constexpr Key kKey = 0x7000;
  std::vector<std::byte> memory(2 * kUnitBytes);
  const std::uintptr_t unit = unit_of(memory.data()) + 1;
  auto* const begin = reinterpret_cast<std::byte*>(unit << kUnitShift);
  for (const std::vector<unsigned>& wanted :
       {std::vector<unsigned>{0}, {4095}, {0, 1, 63, 64, 65, 4095}, {7, 700, 2048}}) {
    UnitPlaces places;
    for (const unsigned place : wanted) places.set(place);
    const BlockList list = take_in_order(places, unit, static_cast<std::uint32_t>(wanted.size()), kKey);
    const FreeBlock* block = list.first;
    for (const unsigned place : wanted) {
      ASSERT_EQ(static_cast<const void*>(block), begin + place * kBlockAlignment);
      block = next_of(block, kKey);
    }
    EXPECT_EQ(block, nullptr);
    EXPECT_EQ(list.count, wanted.size());
    EXPECT_EQ(places.next_set(0), kUnitBytes / kBlockAlignment) << "cleared";
  }
}

TEST(ServingOrder, BlocksThatWereFreedInAnyOrderServeInThatOfAddresses) {
  for (const std::size_t bytes : {16, 48, 64, 200, 896}) {
    tests::in_a_thread<TestHeap>([bytes] {
      std::vector<std::byte*> blocks = allocated(4000, bytes);
      shuffle(blocks, bytes);
      tests::free_all<TestHeap>(blocks);
      EXPECT_EQ(verified(), "");
      // The last list that was freed serves as it is.
      const std::size_t list = std::max<std::size_t>((16u << 10) / bytes, 16);
      allocated(2 * list, bytes);
      const std::vector<std::byte*> served = allocated(1000, bytes);
      EXPECT_GE(ascents(served), 90u) << bytes;
      EXPECT_EQ(verified(), "");
    });
  }
}

TEST(ServingOrder, SlabsThatGoBackForgetWhatWasFree) {
  for (std::uint64_t round = 0; round < 6; ++round)
    for (const std::size_t bytes : {32, 112, 640}) {
      tests::in_a_thread<TestHeap>([bytes, round] {
        std::vector<std::byte*> blocks = allocated(6000, bytes);
        shuffle(blocks, round);
        blocks.resize(5000);  // some stay in use when the thread ends, so that its heap keeps their slabs
        tests::free_all<TestHeap>(blocks);
        EXPECT_EQ(verified(), "");
      });
      EXPECT_EQ(verified(), "");
    }
  TestHeap::trim();
  EXPECT_EQ(verified(), "");
}

TEST(ServingOrderDeathTest, ABlockThatWentBackToItsSlabIsNotFreedTwice) {
  const std::vector<std::byte*> blocks = allocated(4000, 64);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 50 != 0) TestHeap::deallocate(blocks[i]);  // the others keep the slabs
  EXPECT_DEATH(TestHeap::deallocate(blocks[101]), "double free");
}

}  // namespace
}  // namespace loam::heap
