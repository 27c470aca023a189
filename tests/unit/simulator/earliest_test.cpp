// The tournament of the cores' next events, against a search through all of them.
#include "simulator/model/earliest.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace loam::simulator {
namespace {

Earliest::Found searched(const std::vector<std::uint64_t>& times) {
  Earliest::Found found{0, kNever, kNever};
  for (unsigned core = 0; core < times.size(); ++core)
    if (times[core] < found.first) {
      found = {core, times[core], found.first};
    } else if (times[core] < found.second) {
      found.second = times[core];
    }
  return found;
}

void expect_as_searched(const Earliest& earliest, const std::vector<std::uint64_t>& times) {
  const auto found = earliest.find(), wanted = searched(times);
  ASSERT_EQ(found.first, wanted.first);
  ASSERT_EQ(found.second, wanted.second);
  if (wanted.first != kNever) {
    ASSERT_EQ(found.core, wanted.core);
  }
}

class Cores : public testing::TestWithParam<unsigned> {};

TEST_P(Cores, FirstAndSecondAreThoseOfASearch) {
  const unsigned cores = GetParam();
  Earliest earliest;
  earliest.init(cores);
  std::vector<std::uint64_t> times(cores, kNever);
  expect_as_searched(earliest, times);
  std::mt19937_64 random(cores);
  for (int step = 0; step < 2000; ++step) {
    // Few times, so that many are equal; the first of them is the lowest core's.
    const auto core = static_cast<unsigned>(random() % cores);
    times[core] = random() % 8 == 0 ? kNever : random() % 16;
    earliest.set(core, times[core]);
    ASSERT_EQ(earliest.at(core), times[core]);
    expect_as_searched(earliest, times);
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Cores, testing::Values(1U, 2U, 3U, 7U, 8U, 64U, 127U, kCoresMax));

TEST(Earliest, BeginsAgain) {
  Earliest earliest;
  earliest.init(4);
  earliest.set(3, 5);
  earliest.init(8);
  EXPECT_EQ(earliest.find().first, kNever);
  earliest.set(7, 9);
  earliest.set(6, 9);
  EXPECT_EQ(earliest.find().core, 6U);
  EXPECT_EQ(earliest.find().second, 9U);
}

}  // namespace
}  // namespace loam::simulator
