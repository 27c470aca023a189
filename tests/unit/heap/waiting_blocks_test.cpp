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

}  // namespace
}  // namespace loam::heap
