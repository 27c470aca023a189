// Locals of the function that begins a transaction: alone with them it accesses them in place; what other threads reach
// of them is shared, and no update is lost (runtime/itm/locals.hpp).
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>

#include <ucontext.h>

namespace {

using namespace loam::tests;

bool in_hardware() {
  const char* const algorithm = std::getenv("LOAM_ITM_ALGORITHM");
  return algorithm != nullptr && std::string_view(algorithm) == "hybrid-norec";
}

constexpr int kRounds = 20'000;

struct Pair {
  long first, second;
};

SAFE void add_to(long& number, long by) { number += by; }
SAFE void add_to_both(Pair& pair, long by) { pair.first += by, pair.second += by; }
long never_true = 0;
SAFE long by_value(Pair pair) { return pair.first - pair.second + never_true; }

// ---- copies through locals --------------------------------------------------------------------------------------------

char source[700], target[700];

[[gnu::noinline]] void relay(int from, int at, int bytes) {
  char local[700];
  __transaction_atomic {
    std::memcpy(local + at, source + from, static_cast<std::size_t>(bytes));
    std::memcpy(target + from, local + at, static_cast<std::size_t>(bytes));
  }
  __asm__ volatile("" ::"r"(local) : "memory");
}

TEST(Locals, ACopyOfAnySizeGoesThroughALocal) {
  for (int i = 0; i < 700; ++i) source[i] = static_cast<char>(i * 11 + 1);
  for (const int bytes : {1, 8, 255, 256, 257, 265, 512, 513, 600}) {
    std::memset(target, 5, sizeof target);
    relay(13, 21, bytes);
    for (int i = 0; i < 700; ++i)
      ASSERT_EQ(target[i], i >= 13 && i < 13 + bytes ? source[i] : 5) << i << " of " << bytes;
  }
}

// ---- shared locals ------------------------------------------------------------------------------------------------------

TEST(Locals, NoUpdateOfASharedLocalIsLost) {
  long sum = 0;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) __transaction_atomic {
        sum += 1;
      }
  });
  for (int i = 0; i < kRounds; ++i) __transaction_atomic {
      sum += 1;
    }
  other.join();
  EXPECT_EQ(sum, 2L * kRounds);
}

// The owner's stack lies below those of the threads that were there before.
TEST(Locals, NoUpdateOfALocalOfAYoungerThreadIsLost) {
  std::atomic<Pair*> shared{nullptr};
  std::atomic<int> done{0};
  std::atomic<bool> over{false};
  const auto add = [&] {
    Pair* pair = nullptr;
    while ((pair = shared) == nullptr) std::this_thread::yield();
    for (int i = 0; i < kRounds; ++i) __transaction_atomic {
        add_to_both(*pair, 1);
      }
    ++done;
    while (!over) std::this_thread::yield();
  };
  std::thread older(add);
  std::thread owner([&] {
    Pair pair{0, 0};
    for (int i = 0; i < 10; ++i) __transaction_atomic {
        add_to_both(pair, 1);
      }  // not shared yet
    shared = &pair;
    long differences = 0;
    for (int i = 0; i < kRounds; ++i) {
      long difference = 0;
      __transaction_atomic {
        add_to_both(pair, 1);
        difference = by_value(pair);
      }
      differences += difference != 0 ? 1 : 0;
    }
    while (done != 2) std::this_thread::yield();
    EXPECT_EQ(differences, 0);
    EXPECT_EQ(pair.first, 3L * kRounds + 10);
    EXPECT_EQ(pair.second, pair.first);
    over = true;
  });
  add();
  older.join();
  owner.join();
}

TEST(Locals, AnArrayOnTheStackIsShared) {
  long numbers[500] = {};
  on_threads(3, [&](int thread) {
    for (int i = 0; i < 5'000; ++i) {
      const int at = (i * 7 + thread * 131) % 500;
      __transaction_atomic {
        numbers[at] += 1;
        numbers[499 - at] += 1;
      }
    }
  });
  long sum = 0;
  for (const long number : numbers) sum += number;
  EXPECT_EQ(sum, 2L * 3 * 5'000);
}

// The owner cancels each second change: nobody sees one, also while it is undone.
[[gnu::noinline]] void change_or_cancel(Pair& pair, bool cancel) {
  __transaction_atomic {
    add_to_both(pair, 1'000'000);
    if (cancel) __transaction_cancel;
    add_to_both(pair, -999'999);
  }
}
[[gnu::noinline]] void reads_a_cancelled(bool share_later) {
  Pair pair{0, 0};
  std::atomic<bool> starts{!share_later}, ends{false};
  long wrong = 0;
  std::thread reader([&] {
    while (!starts) std::this_thread::yield();
    while (!ends) {
      long first = 0, second = 0;
      __transaction_atomic {
        first = pair.first;
        second = pair.second;
      }
      if (first != second || first > kRounds) ++wrong;
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    if (i == 20) starts = true;
    if (i % 2 == 0) {
      __transaction_atomic {
        add_to_both(pair, 1'000'000);
        if (pair.first > 0) __transaction_cancel;
      }
    } else {
      __transaction_atomic { add_to_both(pair, 1); }
    }
  }
  change_or_cancel(pair, true);
  change_or_cancel(pair, false);
  ends = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pair.first, kRounds / 2 + 1);
  EXPECT_EQ(pair.second, pair.first);
}

TEST(Locals, WhatIsCancelledIsNeverSeen) {
  for (int i = 0; i < 10; ++i) {
    reads_a_cancelled(false);
    reads_a_cancelled(true);
  }
}

long in_common;

// Many short-lived frames whose locals become shared one after the other.
TEST(Locals, FramesThatComeAndGoAreSharedEachAnew) {
  std::atomic<long*> shared{nullptr};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      long* const number = shared;
      if (number == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (int i = 0; i < 5; ++i) __transaction_atomic {
          *number += 1;
          in_common += 1;
        }
      shared = nullptr;
    }
  });
  const auto round = [&](auto&& self, int depth) -> void {
    [[maybe_unused]] volatile char room[200];
    room[0] = 0;
    if (depth > 0) return self(self, depth - 1);
    long number = 0;
    shared = &number;
    int own = 0;
    while (shared != nullptr) {
      __transaction_atomic {
        add_to(number, 1);
        in_common += 1;
      }
      ++own;
      std::this_thread::yield();
    }
    EXPECT_EQ(number, own + 5);
  };
  for (int i = 0; i < 60; ++i) round(round, i % 17);
  ends = true;
  other.join();
}

// ---- what is not shared -------------------------------------------------------------------------------------------------

std::atomic<int> runs;
[[gnu::transaction_pure, gnu::noinline]] void count() { ++runs; }

// How often the body of a transaction that writes a local runs until it commits.
[[gnu::noinline]] int runs_of_a_write(Pair& pair_of_main, bool of_main) {
  Pair pair{1, 1};
  runs = 0;
  __transaction_atomic {
    count();
    add_to_both(of_main ? pair_of_main : pair, 1);
    in_common += by_value(pair);
  }
  return runs;
}

TEST(Locals, WhoHasThemAloneRunsAloneOnceAtMost) {
  Pair pair{0, 0};
  std::thread([&] {
    EXPECT_LE(runs_of_a_write(pair, false), 2 + (in_hardware() ? 16 : 0));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(runs_of_a_write(pair, false), 1);
  }).join();
}

// The runs that were more than one, of the last writes before and behind those of another thread.
struct Again {
  int before = 0, beside = 0, behind = 0;
};
[[gnu::noinline]] Again runs_of_own_writes(Pair*& shown, std::atomic<int>& step) {
  Pair pair{0, 0};
  Again again;
  for (int i = 0; i < 210; ++i) {
    if (i == 10) {
      shown = &pair;
      step = 1;  // another thread adds to it
      while (step != 2) std::this_thread::yield();
    }
    runs = 0;
    __transaction_atomic {
      count();
      add_to_both(pair, 1);
    }
    if (i > 0) (i < 10 ? again.before : i < 110 ? again.beside : again.behind) += runs - 1;
  }
  EXPECT_EQ(pair.first, 211);
  return again;
}

TEST(Locals, ASharedOneIsWrittenAloneUntilNobodyElseComes) {
  if (in_hardware()) GTEST_SKIP() << "hardware runs some of them";
  Pair* shown = nullptr;
  std::atomic<int> step{0};
  std::thread other([&] {
    while (step != 1) std::this_thread::yield();
    __transaction_atomic { add_to_both(*shown, 1); }
    step = 2;
  });
  Again again;
  std::thread([&] { again = runs_of_own_writes(shown, step); }).join();
  other.join();
  EXPECT_EQ(again.before, 0);
  EXPECT_GT(again.beside, 0);
  EXPECT_LT(again.beside, 100);
  EXPECT_EQ(again.behind, 0) << "nobody shares it any more";
}

// ---- stacks of coroutines -------------------------------------------------------------------------------------------------

ucontext_t main_context, other_context;
std::function<void()> on_other_stack;
void enter_other_stack() { on_other_stack(); }
alignas(64) char other_stack[256 << 10];

// GCC fails at getcontext() in a function with transactions.
void prepare_other_stack() {
  ASSERT_EQ(::getcontext(&other_context), 0);
  other_context.uc_stack.ss_sp = other_stack;
  other_context.uc_stack.ss_size = sizeof other_stack;
  other_context.uc_link = &main_context;
  ::makecontext(&other_context, &enter_other_stack, 0);
}

TEST(Locals, ACoroutinesStackIsAStack) {
  std::atomic<Pair*> shown{nullptr};
  std::atomic<bool> done{false};
  long sum = 0, of_coroutine = -1;
  const auto add_to_all = [&] {
    Pair* pair = nullptr;
    while ((pair = shown) == nullptr) std::this_thread::yield();
    for (int i = 0; i < 2'000; ++i) __transaction_atomic {
        add_to_both(*pair, 1);
        sum += 1;
      }
    done = true;
  };
  on_other_stack = [&] {
    Pair pair{0, 0};
    shown = &pair;
    for (int i = 0; i < 2'000; ++i) {
      __transaction_atomic { add_to_both(pair, 1); }
      if (i % 100 == 0) ::swapcontext(&other_context, &main_context);
    }
    while (!done) std::this_thread::yield();
    of_coroutine = pair.second;
  };
  prepare_other_stack();
  std::thread other(add_to_all);
  int switches = 0;
  while (of_coroutine < 0) {
    ::swapcontext(&main_context, &other_context);
    __transaction_atomic { add_to(sum, 1); }
    ++switches;
  }
  other.join();
  EXPECT_EQ(of_coroutine, 4'000);
  EXPECT_EQ(sum, 2'000 + switches);
}

}  // namespace
