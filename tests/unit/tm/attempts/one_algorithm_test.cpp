// A process runs its transactions under one algorithm, and is told when two drivers disagree.
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/algorithms/tl2.hpp"
#include "runtime/tm/attempts/driver.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace loam::tm {
namespace {

using First = Driver<Norec<false>>;
using Second = Driver<Tl2<false>>;

constexpr const char* kMessage =
    "a transaction of algorithm tl2 in a process whose transactions run under norec; use one for all";

alignas(64) Word x = 0;

void read() {
  Second::read_only([](auto& tx) { return tx.read(x); });
}
void write() {
  Second::update([](auto& tx) { tx.write(x, Word{1}); });
}

TEST(OneAlgorithmDeathTest, APartOfAnotherAlgorithmEndsTheProcess) {
  EXPECT_DEATH(First::update([](auto&) { read(); }), kMessage);
  EXPECT_DEATH(First::update([](auto&) { write(); }), kMessage);
  EXPECT_DEATH(First::read_only([](auto&) { read(); }), kMessage);
  EXPECT_DEATH(First::read_only([](auto&) { write(); }), kMessage);
}

TEST(OneAlgorithmDeathTest, ACheckedBuildComparesAtEveryBegin) {
#ifndef LOAM_CHECKED
  GTEST_SKIP() << "only a checked build compares outermost transactions";
#endif
  const auto after_one_of_the_first = [](auto&& second) {
    First::update([](auto& tx) { tx.write(x, Word{1}); });
    second();
  };
  EXPECT_DEATH(after_one_of_the_first(read), kMessage);
  EXPECT_DEATH(after_one_of_the_first(write), kMessage);
}

TEST(OneAlgorithmDeathTest, OneAlgorithmRunsInsideItself) {
  EXPECT_EXIT(
      {
        First::update([](auto& tx) {
          tx.write(x, Word{7});
          First::update([](auto& inner) { inner.write(x, inner.read(x) + 1); });
        });
        std::_Exit(First::read_only([](auto& tx) { return tx.read(x); }) == 8 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace loam::tm
