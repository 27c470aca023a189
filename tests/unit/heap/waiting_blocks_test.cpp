// The queue of freed blocks: in which order they leave, and how many wait.
#include "runtime/heap/waiting_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace loam::heap {
namespace {

using Block = WaitingBlocks::Block;

std::uint64_t* place(std::uint64_t number) { return reinterpret_cast<std::uint64_t*>(number << 4); }

TEST(WaitingBlocks, TheyLeaveInOrderWithTheirLengths) {
  WaitingBlocks waiting(7);
  std::uint64_t left = 0;
  const auto release = [&left](const Block& block) {
    ++left;
    EXPECT_EQ(block.words, place(left));
    EXPECT_EQ(block.bytes, left * 31 % (WaitingBlocks::kBytesMax + 1));
  };
  for (std::uint64_t i = 1; i <= 5000; ++i)
    waiting.put({place(i), static_cast<std::size_t>(i * 31 % (WaitingBlocks::kBytesMax + 1))}, release);
  EXPECT_LT(left, 5000u);
  waiting.release_all(release);
  EXPECT_EQ(left, 5000u);
}

TEST(WaitingBlocks, HighAddressesAndLongBlocksComeBackAsTheyWere) {
  const Block longest{place((std::uint64_t{1} << (kAddressBits - 4)) - 1), WaitingBlocks::kBytesMax};
  WaitingBlocks waiting(7);
  waiting.put(longest, [](const Block&) {});
  unsigned seen = 0;
  waiting.for_each([&](const Block& block) {
    ++seen;
    EXPECT_EQ(block.words, longest.words);
    EXPECT_EQ(block.bytes, longest.bytes);
  });
  EXPECT_EQ(seen, 1u);
}

// What a seed draws: how many stay, each time that some leave.
std::vector<std::uint64_t> limits_of(std::uint64_t seed) {
  WaitingBlocks waiting(seed);
  std::uint64_t left = 0;
  std::vector<std::uint64_t> limits;
  for (std::uint64_t i = 1; limits.size() < 200; ++i) {
    const std::uint64_t before = left;
    waiting.put({place(i), 1}, [&left](const Block&) { ++left; });
    EXPECT_LT(i - left, std::uint64_t{WaitingBlocks::kPlaces});
    if (left != before) limits.push_back(i - left);
  }
  return limits;
}

TEST(WaitingBlocks, HowManyWaitIsDrawnAgainAndAgain) {
  const std::vector<std::uint64_t> limits = limits_of(1);
  EXPECT_GE(*std::min_element(limits.begin(), limits.end()), std::uint64_t{WaitingBlocks::kMin});
  EXPECT_LE(*std::max_element(limits.begin(), limits.end()), std::uint64_t{WaitingBlocks::kMax});
  EXPECT_GE(std::set<std::uint64_t>(limits.begin(), limits.end()).size(), 24u) << "of 32, in 200 draws";
  EXPECT_NE(limits, limits_of(2)) << "by the seed";
}

// Short ones, and a long one after each of them.
TEST(WaitingBlocks, OfLongOnesFewWaitAndShortOnesAsLongAsEver) {
  constexpr std::size_t kLong = 3000;
  WaitingBlocks waiting(7);
  std::set<std::uint64_t> stayed;
  std::uint64_t short_left = 0, long_left = 0;
  for (std::uint64_t i = 1; i <= 5000; ++i) {
    const std::uint64_t before = long_left;
    const auto release = [&](const Block& block) {
      std::uint64_t& left = block.bytes == kLong ? long_left : short_left;
      EXPECT_EQ(block.words, place(2 * ++left + (block.bytes == kLong)));
      EXPECT_LE(left, i);
    };
    waiting.put({place(2 * i), WaitingBlocks::kShortMax}, release);
    EXPECT_TRUE(short_left == 0 || i - short_left >= 12) << "of 32 others that wait with it half are long";
    waiting.put_long({place(2 * i + 1), kLong}, release);
    std::uint64_t bytes = 0;
    waiting.for_each([&bytes](const Block& block) { bytes += block.bytes == kLong ? kLong : 0; });
    EXPECT_EQ(bytes, (i - long_left) * kLong);
    ASSERT_EQ(waiting.verify(), nullptr);
    EXPECT_LE(bytes, WaitingBlocks::kLongBytesMax);
    if (long_left > before) stayed.insert(i - long_left);
  }
  EXPECT_GE(short_left, 4900u);
  EXPECT_GE(*stayed.begin(), WaitingBlocks::kLongBytesMax / 4 / kLong);
  EXPECT_GE(stayed.size(), 8u) << "how many stay is drawn";
}

TEST(WaitingBlocks, OfTheLongestSomeWaitToo) {
  WaitingBlocks waiting(7);
  std::uint64_t left = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    waiting.put_long({place(i), WaitingBlocks::kBytesMax}, [&left](const Block&) { ++left; });
    EXPECT_GE(i - left, std::min<std::uint64_t>(i, 2));
    EXPECT_LE(i - left, 8u);
  }
}

}  // namespace
}  // namespace loam::heap
