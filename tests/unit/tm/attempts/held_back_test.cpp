// Statistics of memory that was released and not yet freed: per thread and all, with a reader that does not move.
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace loam::tm {
namespace {

struct HeldBackTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, HeldBackTest, testing::ValuesIn(tests::variants({"table"})), tests::variant_name);

struct Block {
  Word words[8];
};

alignas(64) Word x = 0;

TEST_P(HeldBackTest, CountsWhatAStalledReaderHoldsBackAndWhereItWent) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr std::uint64_t kBlocks = 1000;
    int attempts = 0;
    EXPECT_EQ(memory::held_back().blocks, 0u);
    Driver::read_only([&](auto& tx) {
      if (attempts++ > 0) return;
      tx.read(x);
      std::thread([&] {
        for (std::uint64_t i = 0; i < kBlocks; ++i)
          Driver::update([](auto& own) { own.destroy(own.template create<Block>()); });
        // Those retired by the first batch may have gone; all since the stall have not.
        const memory::HeldBack own = memory::held_back();
        EXPECT_GE(own.blocks, kBlocks);
        EXPECT_GE(own.bytes, kBlocks * sizeof(Block));
        EXPECT_LE(own.bytes, kBlocks * (sizeof(Block) + sizeof(reclaim::Retired)));
        EXPECT_EQ(memory::held_back_of_all().blocks, own.blocks);
      }).join();
      // The thread has ended; what it held back has not.
      EXPECT_EQ(memory::held_back().blocks, 0u);
      EXPECT_EQ(memory::held_back_of_all().blocks, kBlocks);
      EXPECT_GE(memory::held_back_of_all().bytes, kBlocks * sizeof(Block));
    });
    quiesce();
    EXPECT_EQ(memory::held_back_of_all().blocks, 0u);
    EXPECT_EQ(memory::held_back_of_all().bytes, 0u);
    EXPECT_EQ(statistics_of_all().blocks_freed, kBlocks);
  });
}

TEST_P(HeldBackTest, AnAbortedAttemptHoldsNothingBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static Word* block = nullptr;
    Driver::update([](auto& tx) { tx.write(block, tx.template create<Word>(1u)); });
    try {
      Driver::update([](auto& tx) {
        tx.destroy(tx.read(block));
        Driver::cancel();
      });
    } catch (const Cancelled&) {
    }
    EXPECT_EQ(memory::held_back_of_all().blocks, 0u);
    EXPECT_EQ(*block, 1u);
    Driver::update([](auto& tx) { tx.destroy(tx.read(block)); });
    EXPECT_EQ(memory::held_back().blocks, 1u);
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(memory::held_back().blocks, 0u);
  });
}

}  // namespace
}  // namespace loam::tm
