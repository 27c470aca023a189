// The inputs that are made have published values: the same bytes as the generator that made the published files.
#include "workloads/applications/shared/points.hpp"
#include "workloads/applications/shared/intrusion.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"

#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace loam::workloads::applications {
namespace {

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

TEST(MersenneTwister, DrawsAsTheLibrarysDoes) {
  for (const std::uint32_t seed : {0u, 1u, 7u, 5489u}) {
    MersenneTwister ours(seed);
    std::mt19937 theirs(seed);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(ours(), theirs()) << "seed " << seed << " draw " << i;
  }
}

// Python: random.seed(0); random.random(), random.random()
TEST(PythonRandom, DrawsAsPythonDoes) {
  PythonRandom random(0);
  EXPECT_EQ(random.random(), 0.8444218515250481);
  EXPECT_EQ(random.random(), 0.7579544029403025);
}

// Digests of what Python's generator writes for the same shapes: centres drawn first, then a centre and gauss() for
// each attribute, "%.12g".
TEST(Points, TheFileIsPythonsByteForByte) {
  const std::string small = points_file({.points = 64, .attributes = 4, .centres = 4});
  EXPECT_TRUE(small.starts_with("1 0.310157557408 0.75272908478 0.629368551181 0.242741183409\n"));
  EXPECT_EQ(fnv1a(small), 0x6b812f8af0c82129u);
  const std::string published = points_file({.points = 2048, .attributes = 16, .centres = 16});
  EXPECT_EQ(published.size(), 500'250u);
  EXPECT_EQ(fnv1a(published), 0x79753bf6b2741c16u);
}

TEST(Points, AttributesAreScaledToMeanZeroAndDeviationOne) {
  const PointsShape shape{.points = 500, .attributes = 3, .centres = 4};
  std::vector<float> points(shape.points * shape.attributes);
  make_points(shape, points);
  for (std::uint64_t j = 0; j < shape.attributes; ++j) {
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < shape.points; ++i) {
      const double value = points[i * shape.attributes + j];
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / static_cast<double>(shape.points), 0, 1e-4);
    EXPECT_NEAR(squares / static_cast<double>(shape.points), 1, 1e-3);
  }
}

TEST(Traffic, HasThePublishedNumbersOfPacketsAndAttacks) {
  const auto traffic = intrusion::make_traffic(
      {.attack_percent = 10, .length_max = 128, .flows = 16384, .seed = 1},
      [](void*, std::size_t bytes) { return std::malloc(bytes); }, nullptr);
  EXPECT_EQ(traffic.packets.size(), 478'567u);
  EXPECT_EQ(traffic.attacks, 1888u);
  std::vector<std::int64_t> seen(16385, 0);
  for (intrusion::Packet* const packet : traffic.packets) {
    ASSERT_LT(packet->fragment, packet->fragments);
    ++seen[static_cast<std::size_t>(packet->flow)];
    std::free(packet);
  }
  for (std::size_t flow = 1; flow < seen.size(); ++flow) ASSERT_GT(seen[flow], 0) << flow;
}

TEST(Detector, FindsWordsOfAnyCase) {
  char attack[] = "x1YOUrz", harmless[] = "x1YUrz";
  EXPECT_TRUE(intrusion::is_attack(attack));
  EXPECT_FALSE(intrusion::is_attack(harmless));
}

}  // namespace
}  // namespace loam::workloads::applications
