// What a library behind GCC's -fgnu-tm can get wrong, each with a program that shows it (docs/libitm.md, T1 to T11). This
// file is compiled with -fgnu-tm, with and without optimisation, and runs on our libitm.so.1 under several algorithms.
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
[[gnu::transaction_pure]] void _ITM_addUserCommitAction(void (*)(void*), std::uint64_t, void*);
[[gnu::transaction_pure]] void _ITM_addUserUndoAction(void (*)(void*), void*);
[[gnu::transaction_pure]] unsigned _ITM_inTransaction();
[[gnu::transaction_pure]] std::uint64_t _ITM_getTransactionId();
const char* _ITM_libraryVersion();
int _ITM_versionCompatible(int);
}

namespace {

using namespace loam::tests;

TEST(Library, IsOurs) {
  EXPECT_NE(std::strstr(_ITM_libraryVersion(), "Loam"), nullptr);
  EXPECT_EQ(_ITM_versionCompatible(90), 1);
  EXPECT_EQ(_ITM_versionCompatible(91), 0);
}

// ---- T1: frames below the one that began ------------------------------------------------------------------------------

SAFE void fill(int* numbers, int count, int seed) {
  for (int i = 0; i < count; ++i) numbers[i] = seed + i;
}
SAFE long sum_of(const int* numbers, int count) {
  long sum = 0;
  for (int i = 0; i < count; ++i) sum += numbers[i];
  return sum;
}
SAFE long with_locals(int seed) {
  int numbers[128];
  fill(numbers, 128, seed);
  return sum_of(numbers, 128);
}
long total;

TEST(T1, LocalsOfCalledFunctionsAreNotWrittenOverTheLibrarysFrames) {
  total = 0;
  for (int i = 0; i < 100; ++i) {
    long sum;
    __transaction_atomic {
      sum = with_locals(i);
      total += sum;
    }
    ASSERT_EQ(sum, 128L * i + 127 * 64);
  }
  EXPECT_EQ(total, 128L * 99 * 50 + 100 * 127 * 64);
}

SAFE void cancelled_below(int depth, bool cancel) {
  int numbers[64];
  fill(numbers, 64, depth);
  total += numbers[3];
  if (depth > 0) cancelled_below(depth - 1, cancel);
  total += sum_of(numbers, 64);
}

TEST(T1, AbortsPutNothingBackIntoFramesThatAreGone) {
  total = 5;
  for (int i = 0; i < 20; ++i) __transaction_atomic {
      cancelled_below(5, true);
      __transaction_cancel;
    }
  EXPECT_EQ(total, 5);
}

long nothing = 0;
SAFE long shared_sum_base() { return nothing; }
struct Pair {
  long first, second;
};
SAFE void set_pair(Pair& pair, long value) { pair.first = value, pair.second = value + shared_sum_base(); }
SAFE long by_value(Pair pair) { return pair.first * 1000 + pair.second; }

TEST(T1, ALocalThatIsPassedByValueHasWhatWasWrittenThroughABarrier) {
  for (long i = 0; i < 10; ++i) {
    long result;
    __transaction_atomic {
      Pair pair;
      set_pair(pair, i);
      result = by_value(pair);
    }
    ASSERT_EQ(result, i * 1000 + i);
  }
}

TEST(T1, ALocalThatWasWrittenThroughABarrierGoesBack) {
  Pair pair{5, 6};
  __transaction_atomic {
    set_pair(pair, 9);
    __transaction_cancel;
  }
  EXPECT_EQ(pair.first, 5);
  EXPECT_EQ(pair.second, 6);
}

// ---- registers and locals of the function that begins -------------------------------------------------------------------

Padded left_counter, right_counter;

[[gnu::noinline]] long many_live(long a, long b, long c, long d, long e, long f) {
  long g = a * 3, h = b * 5, i = c * 7, j = d * 11, k = e * 13, l = f * 17;
  __transaction_atomic {
    left_counter.value += 1;
    right_counter.value += left_counter.value % 2 == 0 ? 1 : 1;
    a += 1;
    g += a;
  }
  return a + b + c + d + e + f + g + h + i + j + k + l;
}

TEST(Registers, ComeBackWithEachAttempt) {
  left_counter.value = right_counter.value = 0;
  std::atomic<long> wrong{0};
  on_threads(4, [&](int thread) {
    for (long n = 0; n < 20'000; ++n) {
      const long x = n + thread;
      const long want = (x + 1) + (x + 1) + (x + 2) + (x + 3) + (x + 4) + (x + 5) + (3 * x + x + 1) + 5 * (x + 1) +
                        7 * (x + 2) + 11 * (x + 3) + 13 * (x + 4) + 17 * (x + 5);
      if (many_live(x, x + 1, x + 2, x + 3, x + 4, x + 5) != want) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(left_counter.value, 80'000);
  EXPECT_EQ(right_counter.value, 80'000);
}

// ---- T4, T5: cancel ---------------------------------------------------------------------------------------------------------

long shared_b, shared_c;

[[gnu::noinline]] void adds_and_cancels(bool cancel) {
  __transaction_atomic {
    ++shared_b;
    if (cancel) __transaction_cancel;
  }
}

TEST(T4, AWriteAfterAReadForWriteIsUndone) {
  shared_b = 10;
  adds_and_cancels(true);
  EXPECT_EQ(shared_b, 10);
  adds_and_cancels(false);
  EXPECT_EQ(shared_b, 11);
}

[[gnu::noinline]] long nested(bool cancel_inner) {
  long local = 1;
  __transaction_atomic {
    shared_b += 1;
    local += 10;
    __transaction_atomic {
      shared_b += 100;
      shared_c += 100;
      local += 100;
      if (cancel_inner) __transaction_cancel;
    }
    shared_c += 1;
  }
  return local;
}

TEST(T5, ANestedCancelTakesItsPartBackAlone) {
  shared_b = shared_c = 0;
  EXPECT_EQ(nested(true), 11);
  EXPECT_EQ(shared_b, 1);
  EXPECT_EQ(shared_c, 1);
  EXPECT_EQ(nested(false), 111);
  EXPECT_EQ(shared_b, 102);
  EXPECT_EQ(shared_c, 102);
}

TEST(T5, ABlockOfTheTransactionAroundGoesBackToItsValue) {
  long seen = 0;
  __transaction_atomic {
    long* const block = static_cast<long*>(std::malloc(sizeof(long)));
    *block = 7;
    __transaction_atomic {
      *block = 9;
      __transaction_cancel;
    }
    seen = *block;
    std::free(block);
  }
  EXPECT_EQ(seen, 7);
}

[[gnu::noinline]] int outer_cancel() {
  int reached = 0;
  __transaction_atomic [[outer]] {
    shared_b += 1;
    __transaction_atomic {
      shared_b += 1;
      __transaction_cancel [[outer]];
    }
    reached = 1;
  }
  return reached;
}

TEST(T5, AnOuterCancelTakesAllBack) {
  shared_b = 3;
  EXPECT_EQ(outer_cancel(), 0);
  EXPECT_EQ(shared_b, 3);
}

// ---- T7: irrevocable ----------------------------------------------------------------------------------------------------------

int unsafe_calls;
[[gnu::transaction_unsafe, gnu::noinline]] void unsafe() { ++unsafe_calls; }

TEST(T7, AnUnsafeCallRunsOnceAndAlone) {
  unsafe_calls = 0;
  left_counter.value = 0;
  on_threads(3, [&](int) {
    for (int n = 0; n < 1'000; ++n) __transaction_relaxed {
        ++left_counter.value;
        unsafe();
      }
  });
  EXPECT_EQ(unsafe_calls, 3'000);
  EXPECT_EQ(left_counter.value, 3'000);
}

TEST(T7, OneThatBecomesIrrevocableLater) {
  unsafe_calls = 0;
  left_counter.value = 0;
  on_threads(3, [&](int) {
    for (int n = 0; n < 1'000; ++n) __transaction_relaxed {
        ++left_counter.value;
        if (n % 4 == 0) unsafe();
      }
  });
  EXPECT_EQ(unsafe_calls, 750);
  EXPECT_EQ(left_counter.value, 3'000);
}

// ---- T8: clones -----------------------------------------------------------------------------------------------------------------

SAFE long twice(long value) { return 2 * value + shared_c * 0; }
SAFE long thrice(long value) { return 3 * value + shared_c * 0; }
using Function = long (*)(long) transaction_safe;
Function volatile functions[2] = {twice, thrice};

TEST(T8, AFunctionPointerFindsItsClone) {
  long results[2];
  int revocable = 0;
  for (int i = 0; i < 6; ++i) {
    Function function = functions[i % 2];
    unsigned how = 0;
    __transaction_atomic {
      results[i % 2] = function(7);
      how = _ITM_inTransaction();
    }
    revocable += how == 1 ? 1 : 0;
  }
  EXPECT_GE(revocable, 5) << "hybrid-norec may run one alone, if an interrupt ends its first attempt";
  EXPECT_EQ(results[0], 14);
  EXPECT_EQ(results[1], 21);
}

// ---- T11, block functions, types ---------------------------------------------------------------------------------------------------

[[gnu::const, gnu::noinline]] int large(int value) { return value > 100; }

TEST(T11, AFunctionWithoutEffectsIsCalledAsItIs) {
  int result = 0;
  __transaction_atomic {
    if (large(static_cast<int>(shared_b) + 200)) result = 1;
    shared_b += result;
  }
  EXPECT_EQ(result, 1);
}

char text[600], other[600];

TEST(Blocks, CopiesMovesAndSets) {
  for (int i = 0; i < 600; ++i) text[i] = static_cast<char>(i), other[i] = 0;
  __transaction_atomic {
    std::memset(other, 3, 600);
    std::memcpy(other + 1, text, 500);
    std::memmove(text + 7, text, 500);
  }
  EXPECT_EQ(other[0], 3);
  EXPECT_EQ(other[599], 3);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(other[i + 1], static_cast<char>(i));
    ASSERT_EQ(text[i + 7], static_cast<char>(i));
  }
  __transaction_atomic { std::memmove(text, text + 7, 500); }
  for (int i = 0; i < 500; ++i) ASSERT_EQ(text[i], static_cast<char>(i));
}

struct Mixed {
  char c;
  short s;
  int i;
  float f;
  double d;
  long double e;
  _Complex double z;
} mixed;

[[gnu::noinline]] void changes_all(bool cancel) {
  __transaction_atomic {
    mixed.c += 1;
    mixed.s += 2;
    mixed.i += 3;
    mixed.f += 4;
    mixed.d += 5;
    mixed.e += 6;
    mixed.z += 7;
    if (cancel) __transaction_cancel;
  }
}

TEST(Types, EachIsReadWrittenAndTakenBack) {
  mixed = {};
  changes_all(true);
  EXPECT_EQ(mixed.c + mixed.s + mixed.i + mixed.f + mixed.d, 0);
  changes_all(false);
  changes_all(false);
  EXPECT_EQ(mixed.c, 2);
  EXPECT_EQ(mixed.s, 4);
  EXPECT_EQ(mixed.i, 6);
  EXPECT_EQ(mixed.f, 8);
  EXPECT_EQ(mixed.d, 10);
  EXPECT_EQ(mixed.e, 12);
  EXPECT_EQ(__real__ mixed.z, 14);
}

// ---- what programs call -------------------------------------------------------------------------------------------------------------

std::vector<int>* said;
void says(void* number) { said->push_back(*static_cast<int*>(number)); }
int one = 1, two = 2, three = 3;

TEST(Actions, RunAfterACommitOrAnAbortInTheirOrder) {
  std::vector<int> order;
  said = &order;
  __transaction_atomic {
    _ITM_addUserCommitAction(says, 1, &one);
    _ITM_addUserUndoAction(says, &three);
    _ITM_addUserCommitAction(says, 1, &two);
    shared_b += 1;
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  order.clear();
  __transaction_atomic {
    _ITM_addUserUndoAction(says, &one);
    _ITM_addUserCommitAction(says, 1, &three);
    _ITM_addUserUndoAction(says, &two);
    shared_b += 1;
    __transaction_cancel;
  }
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
  __transaction_atomic { shared_b += 1; }
  EXPECT_EQ(order.size(), 2u) << "what is over is forgotten";
}

TEST(State, IsToldInsideAndOutside) {
  EXPECT_EQ(_ITM_inTransaction(), 0u);
  EXPECT_EQ(_ITM_getTransactionId(), 1u);
  unsigned inside = 0;
  std::uint64_t first = 0, second = 0;
  for (int i = 0; i < 2 && inside != 1; ++i) {  // hybrid-norec may run the first one of a place alone
    __transaction_atomic {
      inside = _ITM_inTransaction();
      shared_b += 1;
    }
  }
  EXPECT_EQ(inside, 1u);
  __transaction_atomic {
    first = _ITM_getTransactionId();
    shared_b += 1;
  }
  __transaction_atomic {
    second = _ITM_getTransactionId();
    shared_b += 1;
  }
  EXPECT_GT(first, 1u);
  EXPECT_NE(first, second);
  __transaction_relaxed {
    unsafe();
    inside = _ITM_inTransaction();
  }
  EXPECT_EQ(inside, 2u);
}

}  // namespace
