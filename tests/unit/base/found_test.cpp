#include "runtime/base/found.hpp"

#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>
#include <string_view>
#include <thread>

namespace loam::base {
namespace {

TEST(Found, IsFoundOnceAndKept) {
  constinit static Found<std::string_view> found;
  int looks = 0;
  const auto look = [&] { return ++looks, std::string_view("here"); };
  EXPECT_EQ(found.get(look), "here");
  EXPECT_EQ(found.get(look), "here");
  EXPECT_EQ(looks, 1);
}

TEST(Found, WhoComesMeanwhileLooksAndDoesNotWait) {
  constinit static Found<int> found;
  const int first = found.get([] {
    int second = 0;
    std::thread([&] { second = found.get([] { return 2; }); }).join();
    EXPECT_EQ(second, 2);
    return 1;
  });
  EXPECT_EQ(first, 1) << "what it has found itself";
  EXPECT_EQ(found.get([] { return 3; }), 2) << "who was ready first has said it";
}

TEST(Found, WhoComesWhileItIsWrittenDownLooksAndDoesNotWait) {
  LOAM_NEEDS_POINTS();
  constinit static Found<int> found;
  int second = 0;
  tests::Interpose meanwhile("base.found", 0, [&] { second = found.get([] { return 2; }); });
  EXPECT_EQ(found.get([] { return 1; }), 1);
  EXPECT_TRUE(meanwhile.reached());
  EXPECT_EQ(second, 2);
  EXPECT_EQ(found.get([] { return 3; }), 1);
}

#ifndef LOAM_TSAN  // it does not follow forks of threads
TEST(Found, TheChildOfAForkInTheMiddleFindsItForItself) {
  LOAM_NEEDS_POINTS();
  constinit static Found<int> found;
  bool child_was_good = false;
  tests::Interpose forks("base.found", 0, [&] {
    child_was_good = tests::in_fork([] {
      bool good = true;
      for (int i = 2; i < 5; ++i) good &= found.get([i] { return i; }) == i;
      return good;
    });
  });
  EXPECT_EQ(found.get([] { return 1; }), 1);
  EXPECT_TRUE(forks.reached());
  EXPECT_TRUE(child_was_good);
}
#endif

}  // namespace
}  // namespace loam::base
