// Exceptions that leave transactions, are caught in them, or are taken back with their attempt (docs/internals/itm.md, T2
// and T3).
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace {

using namespace loam::tests;

Padded left_counter, right_counter;

SAFE void throws_a_number(int which) {
  if (which % 3 == 0) throw which;
}

TEST(T2, AnExceptionOfACommittedTransactionHasItsValue) {
  left_counter.value = 0;
  int caught = 0;
  for (int i = 0; i < 30; ++i) {
    try {
      __transaction_atomic {
        ++left_counter.value;
        throws_a_number(i);
      }
    } catch (int value) {
      EXPECT_EQ(value, i);
      ++caught;
    }
  }
  EXPECT_EQ(caught, 10);
  EXPECT_EQ(left_counter.value, 30);
}

TEST(T2, TheTextOfAStandardExceptionIsThere) {
  for (int i = 0; i < 10; ++i) {
    bool caught = false;
    try {
      __transaction_atomic { throw std::runtime_error("a text that is too long for a short string of libstdc++"); }
    } catch (const std::runtime_error& error) {
      caught = std::strcmp(error.what(), "a text that is too long for a short string of libstdc++") == 0;
    }
    EXPECT_TRUE(caught);
  }
}

// What an attempt has caught and handled is over: a cancel later drops no exception that is handled around the transaction.
[[gnu::noinline]] void throws_inside_and_cancels() {
  __transaction_atomic {
    try {
      ++left_counter.value;
      throws_a_number(3);
    } catch (...) {
      ++left_counter.value;
    }
    right_counter.value = 1;
    if (right_counter.value == 1) __transaction_cancel;
  }
}

TEST(T3, ACancelAfterAnEndedCatchKeepsTheExceptionAroundIt) {
  left_counter.value = right_counter.value = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      throw 1.5;
    } catch (double& number) {
      throws_inside_and_cancels();
      EXPECT_NE(std::current_exception(), nullptr);
      EXPECT_EQ(number, 1.5);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }
  EXPECT_EQ(left_counter.value, 0);
}

TEST(T3, AnAttemptThatThrewAndCannotCommitRunsAgain) {
  left_counter.value = right_counter.value = 0;
  std::atomic<long> caught{0};
  on_threads(4, [&](int) {
    for (int n = 0; n < 10'000; ++n) {
      try {
        __transaction_atomic {
          ++left_counter.value;
          ++right_counter.value;
          throws_a_number(n);
        }
      } catch (int) {
        ++caught;
        if (std::uncaught_exceptions() != 0) std::abort();
      }
    }
  });
  EXPECT_EQ(left_counter.value, 40'000);
  EXPECT_EQ(right_counter.value, 40'000);
  EXPECT_EQ(caught, 4 * 3334);
}

TEST(T3, OneThatIsCaughtInsideIsTakenBackWithItsAttempt) {
  left_counter.value = 0;
  on_threads(4, [&](int) {
    for (int n = 0; n < 5'000; ++n) __transaction_atomic {
        try {
          ++left_counter.value;
          throws_a_number(n);
        } catch (...) {
          ++left_counter.value;
        }
      }
  });
  EXPECT_EQ(left_counter.value, 4 * (5'000 + 1667));
}

}  // namespace
