// Slots of samples: the order in which they serve again, and what is known of each.
#include "runtime/heap/sampled_blocks.hpp"
#include "runtime/heap/page_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace loam::heap {
namespace {

using Blocks = SampledBlocks<SystemPages>;

constexpr unsigned kSlots = Blocks::kSlots;

SampledBlock& take(Blocks& blocks) {
  void* const start = blocks.take(100, 1, {});
  EXPECT_NE(start, nullptr);
  return blocks.near(start);
}

// A freed block's page stays closed as long as possible: so an access after the free is found for longest.
TEST(SampledBlocks, TheSlotThatHasBeenFreeForLongestServes) {
  Blocks blocks;
  std::vector<SampledBlock*> first;
  for (unsigned i = 0; i < 5; ++i) first.push_back(&take(blocks));
  const std::vector<SampledBlock*> freed{first[3], first[0], first[4], first[1]};
  for (SampledBlock* const block : freed) EXPECT_TRUE(blocks.give(*block, {}));
  for (unsigned i = 5; i < kSlots; ++i) {
    SampledBlock& block = take(blocks);
    EXPECT_EQ(std::count(freed.begin(), freed.end(), &block), 0) << "slot " << i << " was freed a moment ago";
  }
  for (SampledBlock* const block : freed) EXPECT_EQ(&take(blocks), block);
  EXPECT_EQ(blocks.take(100, 1, {}), nullptr) << "every slot is held";
}

// The same over and over, where the queue of free slots has gone round its end.
TEST(SampledBlocks, EachSlotServesOnceInARound) {
  Blocks blocks;
  std::vector<SampledBlock*> before;
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<SampledBlock*> served;
    for (unsigned i = 0; i < kSlots; ++i) {
      served.push_back(&take(blocks));
      EXPECT_TRUE(blocks.give(*served.back(), {}));
      EXPECT_FALSE(blocks.give(*served.back(), {})) << "it is freed already";
    }
    if (round != 0) {
      EXPECT_EQ(served, before) << round;
    }
    before = served;
    std::sort(served.begin(), served.end());
    EXPECT_EQ(std::unique(served.begin(), served.end()), served.end()) << round;
  }
}

}  // namespace
}  // namespace loam::heap
