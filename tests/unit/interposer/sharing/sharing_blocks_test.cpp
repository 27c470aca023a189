// Which block an address lies in, and which call stack made it.
#include "lab/interposer/sharing/blocks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace loam::interposer::sharing {
namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)

class BlocksTest : public ::testing::Test {
 protected:
  static constexpr std::uintptr_t kHere = 0x7F0000100000;

  std::uintptr_t start_of(std::uintptr_t address) { return blocks_->find(address).start; }

  std::unique_ptr<Blocks> blocks_ = std::make_unique<Blocks>();
};

TEST_F(BlocksTest, EachByteOfABlockLeadsToIt) {
  blocks_->add(at(kHere), 40, Blocks::maker(77, 5));
  for (std::uintptr_t byte = 0; byte < 40; ++byte) EXPECT_EQ(start_of(kHere + byte), kHere);
  const Block block = blocks_->find(kHere + 39);
  EXPECT_EQ(block.bytes, 40u);
  EXPECT_EQ(block.thread, 77u);
  EXPECT_EQ(block.site, 5u);
}

TEST_F(BlocksTest, TheBytesBesideABlockAreNobodys) {
  blocks_->add(at(kHere), 40, Blocks::maker(1, 1));
  EXPECT_EQ(start_of(kHere + 40), 0u);
  EXPECT_EQ(start_of(kHere - 1), 0u);
}

TEST_F(BlocksTest, NeighboursAreToldApart) {
  blocks_->add(at(kHere), 16, Blocks::maker(1, 1));
  blocks_->add(at(kHere + 16), 8, Blocks::maker(2, 2));
  EXPECT_EQ(start_of(kHere + 15), kHere);
  EXPECT_EQ(start_of(kHere + 16), kHere + 16);
  EXPECT_EQ(start_of(kHere + 24), 0u);
}

// As mimalloc and tcmalloc place them.
TEST_F(BlocksTest, BlocksOfEightBytesSideBySideAreToldApart) {
  for (std::uintptr_t n = 0; n < 8; ++n) blocks_->add(at(kHere + 8 * n), 8, Blocks::maker(n + 1, n + 10));
  for (std::uintptr_t byte = 0; byte < 64; ++byte) {
    const Block block = blocks_->find(kHere + byte);
    EXPECT_EQ(block.start, kHere + byte / 8 * 8);
    EXPECT_EQ(block.thread, byte / 8 + 1);
    EXPECT_EQ(block.site, byte / 8 + 10);
  }
  EXPECT_TRUE(blocks_->remove(at(kHere + 8)));
  EXPECT_EQ(start_of(kHere + 8), 0u);
  EXPECT_EQ(start_of(kHere), kHere);
  EXPECT_EQ(start_of(kHere + 16), kHere + 16);
}

TEST_F(BlocksTest, ALongBlockMayStartInTheUpperHalf) {
  blocks_->add(at(kHere + 8), 100'000, Blocks::maker(1, 1));
  EXPECT_EQ(start_of(kHere + 8), kHere + 8);
  EXPECT_EQ(start_of(kHere + 100'007), kHere + 8);
  EXPECT_EQ(start_of(kHere), 0u);
}

TEST_F(BlocksTest, ABlockThatIsGoneIsNotFound) {
  blocks_->add(at(kHere), 64, Blocks::maker(1, 1));
  EXPECT_TRUE(blocks_->remove(at(kHere)));
  EXPECT_FALSE(blocks_->remove(at(kHere)));
  EXPECT_EQ(start_of(kHere), 0u);
  blocks_->add(at(kHere), 16, Blocks::maker(3, 4));
  EXPECT_EQ(blocks_->find(kHere).site, 4u);
}

TEST_F(BlocksTest, LongBlocksAreFoundFromAnyByte) {
  for (const std::uint64_t bytes : {Blocks::kLong - 1, Blocks::kLong, std::size_t{1} << 22, std::size_t{1} << 34}) {
    blocks_->add(at(kHere), bytes, Blocks::maker(9, 8));
    for (const std::uint64_t byte : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
      const Block block = blocks_->find(kHere + byte);
      EXPECT_EQ(block.start, kHere) << bytes << " bytes, byte " << byte;
      EXPECT_EQ(block.bytes, bytes);
      EXPECT_EQ(block.thread, 9u);
      EXPECT_EQ(block.site, 8u);
    }
    EXPECT_EQ(start_of(kHere + bytes), 0u);
    EXPECT_TRUE(blocks_->remove(at(kHere)));
    EXPECT_EQ(start_of(kHere), 0u);
    EXPECT_EQ(start_of(kHere + bytes - 1), 0u);
  }
}

TEST_F(BlocksTest, TheShortWaysDoTheSame) {
  EXPECT_FALSE(blocks_->add_short(at(kHere), 40, Blocks::maker(1, 1))) << "where no block was, there is no shadow";
  blocks_->add(at(kHere + 4096), 8, Blocks::maker(1, 1));
  EXPECT_TRUE(blocks_->add_short(at(kHere), 40, Blocks::maker(77, 5)));
  const Block block = blocks_->find(kHere + 39);
  EXPECT_EQ(block.start, kHere);
  EXPECT_EQ(block.bytes, 40u);
  EXPECT_EQ(block.thread, 77u);
  EXPECT_EQ(block.site, 5u);
  EXPECT_TRUE(blocks_->remove_short(at(kHere)));
  EXPECT_FALSE(blocks_->remove_short(at(kHere)));
  EXPECT_EQ(start_of(kHere), 0u);
}

TEST_F(BlocksTest, ALongBlockIsNotForTheShortWays) {
  blocks_->add(at(kHere), 8, Blocks::maker(1, 1));
  EXPECT_TRUE(blocks_->add_short(at(kHere), Blocks::kLong - 1, Blocks::maker(1, 1)));
  EXPECT_FALSE(blocks_->add_short(at(kHere), Blocks::kLong, Blocks::maker(1, 1)));
  blocks_->add(at(kHere), 10 * Blocks::kLong, Blocks::maker(2, 2));
  EXPECT_FALSE(blocks_->remove_short(at(kHere)));
  EXPECT_EQ(start_of(kHere + 9 * Blocks::kLong), kHere) << "nothing was done";
  EXPECT_TRUE(blocks_->remove(at(kHere)));
}

TEST_F(BlocksTest, ASmallBlockBehindALongOneIsItsOwn) {
  blocks_->add(at(kHere), 100'000, Blocks::maker(1, 1));
  blocks_->add(at(kHere + 100'016), 16, Blocks::maker(2, 2));
  EXPECT_EQ(start_of(kHere + 99'999), kHere);
  EXPECT_EQ(start_of(kHere + 100'020), kHere + 100'016);
}

// All of this program counts as the library's own, so its stacks are those of the C library alone: what they hold is tested
// with real programs (tests/lab/explain/test_sharing_real.py).
TEST(Sites, TheSameWayHasTheSameNumber) {
  const auto sites = std::make_unique<Sites>();
  ASSERT_TRUE(sites->map());
  const std::uint64_t number = sites->number(0x401000, 96);
  ASSERT_NE(number, 0u);
  EXPECT_EQ(sites->number(0x401000, 96), number);
  ASSERT_NE(sites->stack(number), nullptr);
  EXPECT_NE(sites->stack(number)->hash.load(), 0u);
}

TEST(Sites, WithoutATableNothingIsKnown) {
  Sites unmapped;
  EXPECT_EQ(unmapped.number(1, 2), 0u);
  EXPECT_EQ(unmapped.stack(0), nullptr);
}

}  // namespace
}  // namespace loam::interposer::sharing
