// What does not go together with inline accesses, under the algorithm that the including test has chosen.
#pragma once

#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/c_inlined.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace loam::tm {
namespace {

struct CInlinedDeathTest : testing::Test {};

TEST_F(CInlinedDeathTest, AccessesOutsideOfTransactionsNameTheCall) {
  tests::in_child([] {
    loam_tx* stale = nullptr;
    atomically([&](loam_tx* tx) { stale = tx; });
    EXPECT_DEATH(loam_tx_read_u64(stale, &x), "loam_tx_read_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_read_u16(stale, &x), "loam_tx_read_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_write_u64(stale, &x, 1), "loam_tx_write_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_write_u8(stale, &x, 1), "loam_tx_write_...\\(\\) outside of transactions");
  });
}

TEST_F(CInlinedDeathTest, AnotherVersionOrLayoutEndsTheProgramAtItsStart) {
  EXPECT_DEATH(loam_tm_compiled_for(LOAM_INLINED_ALGORITHM, LOAM_INLINED_VERSION + 101, LOAM_INLINED_LAYOUT),
               "compiled with the header of version .* and runs with the library of version .*: build it again");
  EXPECT_DEATH(loam_tm_compiled_for(LOAM_INLINED_ALGORITHM, LOAM_INLINED_VERSION, LOAM_INLINED_LAYOUT + 8),
               "not compiled with the flags of this build of the library");
  EXPECT_DEATH(loam_tm_compiled_for("tl2", LOAM_INLINED_VERSION, LOAM_INLINED_LAYOUT), "compiled for tl2");
  loam_tm_compiled_for(LOAM_INLINED_ALGORITHM, LOAM_INLINED_VERSION, LOAM_INLINED_LAYOUT);
}

// Two files of a program, or a program and a library that it loads.
TEST_F(CInlinedDeathTest, AccessesForTwoAlgorithmsEndTheProgram) {
  for (const char* other : {"norec", "etl-wb", "dctl"}) {
    if (std::string_view(other) == LOAM_INLINED_ALGORITHM) continue;
    EXPECT_DEATH(
        loam_tm_compiled_for(other, LOAM_INLINED_VERSION, LOAM_INLINED_LAYOUT),
        std::string("some accesses of this program are compiled for " LOAM_INLINED_ALGORITHM ", others for ") + other);
  }
}

TEST_F(CInlinedDeathTest, TransactionsOfAnotherAlgorithmInCppEndTheProgram) {
  tests::in_child([] {
    EXPECT_DEATH(
        {
          Driver<Tl2<false>>::update([](auto& tx) { tx.write(x, std::uint64_t{1}); });
          atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &y, 1); });
        },
        "accesses of this program are compiled for " LOAM_INLINED_ALGORITHM
        " \\(LOAM_TM_ALGORITHM\\), and its transactions use tl2");
  });
}

TEST_F(CInlined, NoOtherAlgorithmCanBeConfigured) {
  loam_config config;
  loam_config_default(&config);
  EXPECT_STREQ(config.algorithm, LOAM_INLINED_ALGORITHM);
  config.algorithm = "tl2";
  EXPECT_EQ(loam_configure(&config), LOAM_OUT_OF_RANGE);
  EXPECT_STREQ(loam_error(), "algorithm=tl2: accesses of this program are compiled for " LOAM_INLINED_ALGORITHM
                             "; build it without LOAM_TM_ALGORITHM to choose");
}

TEST_F(CInlinedDeathTest, TheEnvironmentCannotChooseAnother) {
  EXPECT_EXIT(
      {
        setenv("LOAM_TM", "algorithm=tl2", 1);
        atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); });
        std::_Exit(loam_algorithm_in_use() == std::string_view(LOAM_INLINED_ALGORITHM) && x == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "LOAM_TM: algorithm=tl2: accesses of this program are compiled for " LOAM_INLINED_ALGORITHM ".*; ignored");
}

}  // namespace
}  // namespace loam::tm
