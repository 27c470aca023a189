// Which of a thread's ways to allocate are known.
#include "lab/interposer/sharing/ways.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace loam::interposer::sharing {
namespace {

constexpr std::uintptr_t kCaller = 0x401234, kFrame = 0x7FFC00001000;
constexpr Blocks::Maker kMaker = Blocks::maker(77, 5), kOther = Blocks::maker(77, 6);

TEST(Ways, OneThatWasKeptIsFound) {
  Ways ways;
  EXPECT_EQ(ways.find(kCaller, kFrame), nullptr);
  ways.keep(kCaller, kFrame, kMaker);
  ASSERT_NE(ways.find(kCaller, kFrame), nullptr);
  EXPECT_EQ(*ways.find(kCaller, kFrame), kMaker);
}

// 16 * kKept bytes higher: in the same place.
TEST(Ways, AnotherHeightOrCallerIsAnotherWay) {
  Ways ways;
  ways.keep(kCaller, kFrame, kMaker);
  EXPECT_EQ(ways.find(kCaller, kFrame + 16 * Ways::kKept), nullptr);
  EXPECT_EQ(ways.find(kCaller + Ways::kKept, kFrame), nullptr);
  EXPECT_EQ(ways.find(kCaller, kFrame + 16), nullptr);
  EXPECT_EQ(ways.find(kCaller + 1, kFrame), nullptr);
}

TEST(Ways, ALaterOneTakesItsPlace) {
  Ways ways;
  ways.keep(kCaller, kFrame, kMaker);
  ways.keep(kCaller, kFrame + 16 * Ways::kKept, kOther);
  EXPECT_EQ(ways.find(kCaller, kFrame), nullptr);
  ASSERT_NE(ways.find(kCaller, kFrame + 16 * Ways::kKept), nullptr);
  EXPECT_EQ(*ways.find(kCaller, kFrame + 16 * Ways::kKept), kOther);
}

}  // namespace
}  // namespace loam::interposer::sharing
