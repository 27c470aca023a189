#include "runtime/tm/hardware/fit.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace loam::tm::hardware {
namespace {

// How many transactions of `count` try, if those that try do not fit.
int tries_of(Fit& fit, int count) {
  int tries = 0;
  for (int i = 0; i < count; ++i)
    if (fit.tries()) {
      ++tries;
      fit.did_not_fit();
    }
  return tries;
}

TEST(Fit, OneThatDoesNotFitIsNoReasonToSkipTheNext) {
  Fit fit;
  EXPECT_TRUE(fit.tries());
  fit.did_not_fit();
  EXPECT_TRUE(fit.tries());
}

TEST(Fit, WhereNoneFitsFewerAndFewerTry) {
  Fit fit;
  EXPECT_EQ(tries_of(fit, 2), 2);
  std::vector<int> skipped;
  for (int i = 0; i < 7; ++i) {
    int run = 0;
    while (!fit.tries()) ++run;
    skipped.push_back(run);
    fit.did_not_fit();
  }
  EXPECT_EQ(skipped, (std::vector<int>{2, 6, 14, 30, 62, 62, 62}));
  EXPECT_LE(tries_of(fit, 63'000), 1'000);
}

TEST(Fit, OneThatFitsEndsIt) {
  Fit fit;
  tries_of(fit, 1'000);
  while (!fit.tries()) {
  }
  fit.fitted();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(fit.tries());
    fit.fitted();
  }
  fit.did_not_fit();
  EXPECT_TRUE(fit.tries());
}

}  // namespace
}  // namespace loam::tm::hardware
