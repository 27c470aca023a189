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
#include <vector>

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

// A destructor runs a part and cancels it while an exception of the attempt goes through: the exception goes on.
SAFE void cancels_a_part() {
  __transaction_atomic {
    right_counter.value = 5;
    if (right_counter.value == 5) __transaction_cancel;
  }
}
struct CancelsAtItsEnd {
  SAFE ~CancelsAtItsEnd() { cancels_a_part(); }
};
// The same, where the part has thrown and caught an exception of its own.
SAFE void throws_and_cancels_a_part() {
  __transaction_atomic {
    right_counter.value = 5;
    try {
      throws_a_number(6);
    } catch (...) {
      right_counter.value = 6;
    }
    if (right_counter.value == 6) __transaction_cancel;
  }
}
struct ThrowsAndCancelsAtItsEnd {
  SAFE ~ThrowsAndCancelsAtItsEnd() { throws_and_cancels_a_part(); }
};

template <class Ends>
[[gnu::noinline]] void throws_through() {
  __transaction_atomic {
    const Ends ends;
    ++left_counter.value;
    throws_a_number(3);
  }
}

template <class Ends>
void expect_that_it_goes_on() {
  left_counter.value = right_counter.value = 0;
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      throws_through<Ends>();
    } catch (int value) {
      sum += value;
    }
    ASSERT_EQ(std::uncaught_exceptions(), 0);
    ASSERT_EQ(std::current_exception(), nullptr);
  }
  EXPECT_EQ(sum, 60);
  EXPECT_EQ(left_counter.value, 20);
  EXPECT_EQ(right_counter.value, 0);
}

TEST(T3, AnExceptionGoesOnThroughAPartThatIsCancelled) {
  expect_that_it_goes_on<CancelsAtItsEnd>();
  expect_that_it_goes_on<ThrowsAndCancelsAtItsEnd>();
}

// Without optimisation GCC 12 ends with an internal error where a handler in a transaction names its exception.
#ifdef __OPTIMIZE__
// A part is cancelled while it handles its own exception; and after it has handled one: neither comes back.
[[gnu::noinline]] int cancels_a_part_in_its_handler() {
  int seen = 0;
  __transaction_atomic {
    try {
      throws_a_number(3);
    } catch (int& number) {
      __transaction_atomic {
        number = 4;
        try {
          throws_a_number(6);
        } catch (int& inner) {
          inner = 7;
          right_counter.value = number + inner;
          if (right_counter.value == 11) __transaction_cancel;
        }
      }
      seen = number;
    }
  }
  return seen;
}

TEST(T3, APartThatIsCancelledInItsHandlerLeavesTheOuterException) {
  for (int i = 0; i < 20; ++i) {
    right_counter.value = 0;
    ASSERT_EQ(cancels_a_part_in_its_handler(), 3);
    ASSERT_EQ(right_counter.value, 0);
    ASSERT_EQ(std::uncaught_exceptions(), 0);
    ASSERT_EQ(std::current_exception(), nullptr);
  }
}

// Exceptions end before the transaction does. Their memory is not written when it commits, however many blocks it has, and
// is no longer the attempt's own.
[[gnu::noinline]] int throws_behind_blocks(long** blocks, int count) {
  int sum = 0;
  __transaction_atomic {
    for (int i = 0; i < count; ++i) blocks[i] = new long(i);
    for (int i = 1; i <= 40; ++i) {
      try {
        throws_a_number(3 * i);
      } catch (int& number) {
        number += 1;
        sum += number;
      }
    }
  }
  return sum;
}

TEST(T3, ExceptionsBehindManyBlocksHaveTheirValuesAndAreGone) {
  for (const int count : {0, 15, 16, 17, 40}) {
    std::vector<long*> blocks(static_cast<std::size_t>(count) + 1);
    EXPECT_EQ(throws_behind_blocks(blocks.data(), count), 3 * 820 + 40);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(*blocks[static_cast<std::size_t>(i)], i);
      delete blocks[static_cast<std::size_t>(i)];
    }
  }
}
#endif

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
