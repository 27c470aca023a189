// Private variables that an abort restores (loam_tx_keep): which value comes back, and where they may lie. Under every
// algorithm. c_dead_frames_test.cpp has those that must not come back.
#include "include/loam/tm.h"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

namespace loam::tm {
namespace {

using tests::atomically;
using tests::closed;
using tests::in_c;

struct CKeep : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, CKeep, testing::ValuesIn(Algorithms::kNames), tests::test_name_of);

struct Private {
  std::uint64_t sum = 1;
  char text[100] = "before";
  int attempts = 0;  // not kept
};

TEST_P(CKeep, WhatIsKeptIsAsBeforeInEachAttempt) {
  in_c(GetParam(), [] {
    for (const unsigned flags : {0u, LOAM_READ_ONLY}) {
      Private own;
      EXPECT_EQ(atomically(
                    [&](loam_tx* tx) {
                      loam_tx_keep(tx, &own.sum, sizeof own.sum);
                      loam_tx_keep(tx, own.text, sizeof own.text);
                      EXPECT_EQ(own.sum, 1u);
                      EXPECT_STREQ(own.text, "before");
                      own.sum += 10;
                      std::memset(own.text, 'a', sizeof own.text - 1);
                      loam_tx_keep(tx, &own.sum, sizeof own.sum);  // the first call counts
                      own.sum += 10;
                      if (++own.attempts < 4) loam_tx_restart(tx);
                    },
                    flags),
                LOAM_COMMITTED);
      EXPECT_EQ(own.sum, 21u);
      EXPECT_EQ(own.text[98], 'a');
      EXPECT_GE(own.attempts, 4);
    }
    Private own;
    EXPECT_EQ(atomically([&](loam_tx* tx) {
                loam_tx_keep(tx, &own.sum, sizeof own.sum);
                own.sum = 5;
                loam_tx_cancel(tx);
              }),
              LOAM_CANCELLED);
    EXPECT_EQ(own.sum, 1u);
  });
}

TEST_P(CKeep, APartThatIsTakenBackRestoresWhatItKept) {
  in_c(GetParam(), [] {
    std::uint64_t own = 1;
    int attempts = 0;
    EXPECT_EQ(atomically([&](loam_tx* tx) {
                loam_tx_keep(tx, &own, sizeof own);
                EXPECT_EQ(own, 1u);
                own = 2;
                EXPECT_EQ(closed(tx,
                                 [&](loam_tx* part) {
                                   loam_tx_keep(part, &own, sizeof own);
                                   own = 3;
                                   loam_tx_cancel(part);
                                 }),
                          LOAM_CANCELLED);
                EXPECT_EQ(own, 2u);
                if (++attempts < 3) loam_tx_restart(tx);
              }),
              LOAM_COMMITTED);
    EXPECT_EQ(own, 2u);
  });
}

TEST_P(CKeep, KeptLocalsOfTheOpenFormComeBack) {
  in_c(GetParam(), [] {
    int count = 3;
    volatile int attempts = 0;
    loam_tx_frame frame;
    if (loam_tx_begin(&frame, 0)) {
      loam_tx_keep(frame.tx, &count, sizeof count);
      EXPECT_EQ(count, 3);
      ++count;
      attempts = attempts + 1;
      if (attempts < 4) loam_tx_restart(frame.tx);
      loam_tx_commit(&frame);
    }
    EXPECT_EQ(count, 4);
    EXPECT_EQ(attempts, 4);
  });
}

TEST_P(CKeep, OfTwoValuesTheOlderComesBack) {
  in_c(GetParam(), [] {
    std::uint64_t own[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int attempts = 0;
    EXPECT_EQ(atomically([&](loam_tx* tx) {
                for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(own[i], i + 1);
                loam_tx_keep(tx, own, 8);
                own[0] = 10;
                loam_tx_keep(tx, own, 32);  // longer than the first, whose value is older
                std::fill(own, own + 4, 20);
                loam_tx_keep(tx, own, 64);
                std::fill(own, own + 8, 30);
                if (++attempts < 3) loam_tx_restart(tx);
              }),
              LOAM_COMMITTED);
    EXPECT_EQ(attempts, 3);
  });
}

TEST_P(CKeep, VariablesOutsideOfItsStackComeBack) {
  in_c(GetParam(), [] {
    static std::uint64_t global = 1;
    const auto heap = std::make_unique<std::uint64_t>(1);
    std::uint64_t of_the_caller = 1;  // on the stack of another thread
    std::thread([&] {
      std::uint64_t own = 1;
      int attempts = 0;
      EXPECT_EQ(atomically([&](loam_tx* tx) {
                  for (std::uint64_t* const each : {&global, heap.get(), &of_the_caller, &own}) {
                    EXPECT_EQ(*each, 1u);
                    loam_tx_keep(tx, each, sizeof *each);
                    *each = 2;
                  }
                  if (++attempts == 1) loam_tx_restart(tx);
                }),
                LOAM_COMMITTED);
      EXPECT_EQ(attempts, 2);
    }).join();
  });
}

}  // namespace
}  // namespace loam::tm
