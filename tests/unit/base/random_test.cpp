#include "runtime/base/random.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace loam::base {
namespace {

template <class Generator>
std::vector<std::uint32_t> draw(std::uint64_t seed, std::uint64_t stream, std::uint32_t count, int draws) {
  Generator generator(seed, stream);
  std::vector<std::uint32_t> out;
  for (int i = 0; i < draws; ++i) out.push_back(generator.below(count));
  return out;
}

template <class Generator>
class RandomTest : public testing::Test {};
using Generators = testing::Types<Random, Erand48>;
TYPED_TEST_SUITE(RandomTest, Generators);

TYPED_TEST(RandomTest, IsAFunctionOfSeedAndStream) {
  const auto first = draw<TypeParam>(7, 3, 1u << 30, 100);
  EXPECT_EQ(first, draw<TypeParam>(7, 3, 1u << 30, 100));
  EXPECT_NE(first, draw<TypeParam>(8, 3, 1u << 30, 100));
  EXPECT_NE(first, draw<TypeParam>(7, 4, 1u << 30, 100));
}

// Streams of neighbouring threads, and the same stream of neighbouring seeds, share no draws beyond chance.
TYPED_TEST(RandomTest, NeighbouringStreamsAreUnrelated) {
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::uint64_t stream = 0; stream < 4; ++stream)
      for (const auto value : draw<TypeParam>(seed, stream, 1u << 30, 100)) seen.insert(value);
  EXPECT_GE(seen.size(), 1598u);  // 1600 draws of 2^30 values collide 0.001 times on average
}

// Chi-squared with 99 degrees of freedom: above 180 in less than one of 10^6 generators.
TYPED_TEST(RandomTest, IsUniform) {
  constexpr int kBins = 100, kDraws = 100000;
  std::array<int, kBins> counts{};
  for (const auto value : draw<TypeParam>(1, 0, kBins, kDraws)) {
    ASSERT_LT(value, static_cast<std::uint32_t>(kBins));
    ++counts[value];
  }
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kDraws / kBins, 2) / (kDraws / kBins);
  EXPECT_LT(chi_squared, 180);
  EXPECT_GT(chi_squared, 40);
}

TYPED_TEST(RandomTest, CountOfOneGivesZero) {
  for (const auto value : draw<TypeParam>(1, 0, 1, 10)) EXPECT_EQ(value, 0u);
}

TEST(Random, EveryBitIsSetHalfTheTime) {
  Random random(42);
  std::array<int, 64> ones{};
  constexpr int kDraws = 10000;
  for (int i = 0; i < kDraws; ++i) {
    const auto word = random();
    for (unsigned bit = 0; bit < 64; ++bit) ones[bit] += static_cast<int>((word >> bit) & 1);
  }
  for (const int count : ones) EXPECT_NEAR(count, kDraws / 2, 300);  // six standard deviations
}

TEST(Bits, RoundUpAndMultiples) {
  EXPECT_EQ(round_up(0u, 8u), 0u);
  EXPECT_EQ(round_up(1u, 8u), 8u);
  EXPECT_EQ(round_up(8u, 8u), 8u);
  EXPECT_TRUE(is_multiple_of(24u, 8u));
  EXPECT_FALSE(is_multiple_of(25u, 8u));
}

TEST(Bits, ScaleKeepsTheEnds) {
  EXPECT_EQ(scale_to(0, 8192), 0u);
  EXPECT_EQ(scale_to(0xffffffffu, 8192), 8191u);
}

}  // namespace
}  // namespace loam::base
