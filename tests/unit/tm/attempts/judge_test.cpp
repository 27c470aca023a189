// The judge of switching.hpp: which of two algorithms runs, by windows of any rates.
#include "runtime/tm/attempts/switching.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace loam::tm {
namespace {

constexpr std::uint64_t kWindow = switching::kWindowNs;

// `rate` commits a microsecond.
switching::Window window(bool scales, double rate, double validations_per_commit) {
  const auto commits = static_cast<std::uint64_t>(rate * kWindow / 1000);
  return {.scales = scales,
          .commits = commits,
          .validations = static_cast<std::uint64_t>(static_cast<double>(commits) * validations_per_commit),
          .ns = kWindow};
}

// A load that goes on: the rates that the two algorithms have under it, and validations a commit under that for few.
struct Load {
  double few, many, validations;
};
constexpr Load kCrowd{5.6, 54, 8}, kSingle{12, 8.8, 0}, kSome{41, 24, 2};

struct Course {
  switching::Judge judge;
  bool scales = false;
  std::uint64_t now_ns = 1'000'000'000;
  unsigned changes = 0;
  std::uint64_t scaled_ns = 0;

  void run(const Load& load, std::uint64_t ns) {
    for (const std::uint64_t end = now_ns + ns; now_ns < end;) {
      scaled_ns += scales ? kWindow : 0;
      const bool next = judge.next(scales ? window(true, load.many, 0) : window(false, load.few, load.validations),
                                   now_ns += kWindow);
      changes += next != scales;
      scales = next;
    }
  }
};
constexpr std::uint64_t kMs = 1'000'000;

TEST(Judge, StaysWithFewWhereNobodyMeets) {
  Course course;
  course.run({12, 100, 0.1}, 100 * kMs);
  EXPECT_EQ(course.changes, 0u);
}

TEST(Judge, PassesOverTheWindowOfAChange) {
  switching::Judge judge;
  std::uint64_t now = 1000 * kMs;
  ASSERT_TRUE(judge.next(window(false, 5.6, 8), now += kWindow));
  EXPECT_TRUE(judge.next(window(true, 0.1, 0), now += kWindow));
  EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
  // Back again: the trial that follows fails, and its end is such a window too.
  EXPECT_FALSE(judge.next(window(true, 54, 0), now += 1000 * kMs));
  EXPECT_FALSE(judge.next(window(false, 100, 8), now += kWindow));
  EXPECT_TRUE(judge.next(window(false, 5.6, 8), now += kWindow));
}

// Records come into caches: the rate of a trial's first windows is not yet that of the algorithm.
TEST(Judge, GoesOnWithATrialWhileTheRateRises) {
  for (const unsigned windows : {3u, switching::kTrialWindows + 2}) {
    switching::Judge judge;
    std::uint64_t now = 1000 * kMs;
    ASSERT_TRUE(judge.next(window(false, 30, 8), now += kWindow));
    double rate = 5;
    EXPECT_TRUE(judge.next(window(true, rate, 0), now += kWindow));
    bool stays = true;
    for (unsigned i = 0; i < windows && stays; ++i) stays = judge.next(window(true, rate *= 1.3, 0), now += kWindow);
    if (windows == 3) {
      EXPECT_TRUE(stays);
      EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
      EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
    } else {
      EXPECT_FALSE(stays);
    }
  }
}

TEST(Judge, SettlesWithinAMillisecond) {
  Course course;
  course.run(kSingle, 20 * kMs);
  course.run(kCrowd, kMs);
  EXPECT_TRUE(course.scales);
  EXPECT_EQ(course.changes, 1u);
  course.run(kCrowd, 20 * kMs);
  course.run(kSingle, kMs);
  EXPECT_FALSE(course.scales);
  course.run(kSingle, 20 * kMs);
  course.run(kCrowd, kMs);
  EXPECT_TRUE(course.scales);
}

TEST(Judge, TriesRarelyUnderAConstantLoad) {
  for (const Load& load : {kCrowd, kSome}) {
    Course course;
    course.run(load, 100 * kMs);
    const std::uint64_t scaled_before = course.scaled_ns;
    const unsigned before = course.changes;
    course.run(load, 1000 * kMs);
    EXPECT_EQ(course.scales, load.many > load.few);
    EXPECT_LE(course.changes - before, 2u * 16) << load.few;
    const double share = static_cast<double>(course.scaled_ns - scaled_before) / (1000.0 * kMs);
    EXPECT_NEAR(share, load.many > load.few ? 1 : 0, 0.01) << load.few;
  }
}

// Of two that are about as fast, the one stays that runs.
TEST(Judge, KeepsWhatRunsWhereBothAreAlike) {
  Course course;
  course.run(kCrowd, 10 * kMs);
  ASSERT_TRUE(course.scales);
  course.run({22, 20.5, 2}, 1000 * kMs);
  EXPECT_TRUE(course.scales);
  Course other;
  other.run({20.5, 22, 2}, 1000 * kMs);
  EXPECT_FALSE(other.scales);
}

// A load that never settles costs a few trials in kResetsApartNs.
TEST(Judge, DoesNotTryAllTheTimeWhereTheLoadNeverSettles) {
  Course course;
  for (unsigned i = 0; i < 500; ++i) {
    course.run({40, 20, 2}, 3 * kWindow);
    course.run({10, 5, 2}, 3 * kWindow);
  }
  const double ms = 500 * 6 * kWindow / static_cast<double>(kMs);
  EXPECT_LE(course.changes, 8 * ms / (switching::kResetsApartNs / static_cast<double>(kMs)));
}

}  // namespace
}  // namespace loam::tm
