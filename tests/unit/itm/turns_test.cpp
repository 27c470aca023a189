// One thread in transactions is one thread, whoever it is: the others only have to be quiet (runtime/itm/alone.hpp).
// Threads take turns, overlap, and stop inside transactions.
#include "tests/unit/itm/threads.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

extern "C" {
[[gnu::transaction_pure]] unsigned _ITM_inTransaction();
}

namespace {

using namespace loam::tests;

constexpr unsigned kRetryable = 1, kIrrevocable = 2;
// More transactions than a thread waits through before it asks whether it is alone.
constexpr int kWait = 100'000;

Padded left_counter, right_counter, quick_counter;
std::atomic<long> torn{0};
[[gnu::transaction_pure, gnu::noinline]] void note_torn() { ++torn; }
std::function<void()> meanwhile;
[[gnu::transaction_pure, gnu::noinline]] void run_meanwhile() { meanwhile(); }

[[gnu::noinline]] unsigned adds_to_both() {
  unsigned how = 0;
  __transaction_atomic {
    if (left_counter.value != right_counter.value) note_torn();
    left_counter.value += 1;
    right_counter.value += 1;
    how = _ITM_inTransaction();
  }
  return how;
}
[[gnu::noinline]] void adds_with_a_pause_between() {
  __transaction_atomic {
    left_counter.value += 1;
    run_meanwhile();
    right_counter.value += 1;
  }
}
[[gnu::noinline]] unsigned adds_quickly() {
  unsigned how = 0;
  __transaction_atomic {
    quick_counter.value += 1;
    how = _ITM_inTransaction();
  }
  return how;
}
[[gnu::noinline]] void adds_or_cancels(bool cancel) {
  __transaction_atomic {
    if (left_counter.value != right_counter.value) note_torn();
    left_counter.value += 1;
    right_counter.value += 1;
    if (cancel) __transaction_cancel;
  }
}

void start() {
  left_counter.value = right_counter.value = 0;
  torn = 0;
}

// returns how many transactions it takes until two run plain code; one may, whose hardware attempt an interrupt ended
int until_alone() {
  for (int n = 1; n <= kWait; ++n)
    if (adds_to_both() == kIrrevocable && adds_to_both() == kIrrevocable) return n;
  return 0;
}

// Whether one of two transactions does not run plain code; the first may, as above.
bool runs_beside_others() { return adds_to_both() == kRetryable || adds_to_both() == kRetryable; }

TEST(Turns, AWorkerIsAloneBesideAnIdleMainThread) {
  start();
  EXPECT_EQ(adds_to_both(), kIrrevocable);  // main has filled a structure
  on_threads(1, [](int) {
    EXPECT_TRUE(runs_beside_others()) << "main may run transactions, as far as one knows";
    EXPECT_GT(until_alone(), 0);
    for (int n = 0; n < 1'000; ++n) ASSERT_EQ(adds_to_both(), kIrrevocable);
  });
  EXPECT_EQ(adds_to_both(), kIrrevocable);
  EXPECT_EQ(torn, 0);
}

TEST(Turns, WhoBeginsAgainEndsIt) {
  start();
  std::atomic<int> step{0};
  adds_to_both();
  std::thread worker([&] {
    EXPECT_GT(until_alone(), 0);
    step = 1;
    while (step != 2) std::this_thread::yield();
    EXPECT_TRUE(runs_beside_others());
    step = 3;
    while (step != 4) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_TRUE(runs_beside_others());
  step = 2;
  while (step != 3) std::this_thread::yield();
  // Now the worker is idle, and has not ended.
  EXPECT_GT(until_alone(), 0);
  EXPECT_EQ(adds_to_both(), kIrrevocable);
  step = 4;
  worker.join();
  EXPECT_EQ(torn, 0);
}

TEST(Turns, WhoBeginsAgainWaitsForPlainCode) {
  start();
  std::atomic<bool> pauses{false}, begins{false}, over{false};
  adds_to_both();
  std::thread worker([&] {
    EXPECT_GT(until_alone(), 0);
    meanwhile = [&] {
      pauses = true;
      while (!begins) std::this_thread::yield();
      for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
      EXPECT_FALSE(over);
    };
    adds_with_a_pause_between();
  });
  while (!pauses) std::this_thread::yield();
  std::thread third([&] {  // its first transaction
    begins = true;
    adds_to_both();
    over = true;
  });
  begins = true;
  adds_to_both();
  over = true;
  third.join();
  worker.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left_counter.value, right_counter.value);
}

TEST(Turns, NobodyIsAloneBesideATransactionThatRuns) {
  const char* const algorithm = std::getenv("LOAM_ITM_ALGORITHM");
  if (algorithm != nullptr && std::string_view(algorithm) == "etl-wb")
    GTEST_SKIP() << "its commits wait for attempts that run";
  start();
  std::atomic<bool> pauses{false}, ends{false};
  adds_to_both();
  std::thread second([&] { adds_to_both(); });
  second.join();
  std::thread slow([&] {
    std::atomic<int> attempts{0};
    adds_to_both();
    meanwhile = [&] {
      pauses = true;
      if (++attempts > 1) return;
      while (!ends) std::this_thread::yield();
    };
    __transaction_atomic {
      if (left_counter.value < 0) __transaction_cancel;
      run_meanwhile();
    }
  });
  while (!pauses) std::this_thread::yield();
  quick_counter.value = 0;
  for (int n = 0; n < kWait; ++n) {
    ASSERT_EQ(adds_quickly(), kRetryable) << n;
  }
  ends = true;
  slow.join();
  EXPECT_EQ(quick_counter.value, kWait);
}

TEST(Turns, AChildOfWhoIsAloneBesideOthersRunsItsOwn) {
  start();
  adds_to_both();
  int status = -1;
  on_threads(1, [&](int) {
    EXPECT_GT(until_alone(), 0);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(adds_to_both() == kIrrevocable && torn == 0 ? 0 : 3);
    ::waitpid(child, &status, 0);
    EXPECT_EQ(adds_to_both(), kIrrevocable);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Threads run bursts of transactions, of all kinds, with pauses in between, some of them long enough for another thread
// to become the only one.
void bursts(unsigned seed, int count) {
  start();
  std::atomic<long> added{0}, alone{0}, beside{0};
  std::atomic<unsigned> turn{0};
  on_threads(count, [&](int thread) {
    std::mt19937 random(seed * 17 + static_cast<unsigned>(thread));
    for (int burst = 0; burst < 12; ++burst) {
      // Mostly one at a time; the others often break in.
      for (unsigned i = 0; i < 200 && turn % static_cast<unsigned>(count) != static_cast<unsigned>(thread); ++i)
        std::this_thread::yield();
      const unsigned transactions = 1 + random() % 3'000;
      for (unsigned n = 0; n < transactions; ++n) {
        if (n % 64 == 63) adds_or_cancels(true);
        ++(adds_to_both() == kIrrevocable ? alone : beside);
        ++added;
      }
      ++turn;
    }
  });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left_counter.value, right_counter.value);
  EXPECT_EQ(left_counter.value, added);
}

TEST(Turns, BurstsThatOverlapLoseNothing) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    bursts(seed, 2);
    bursts(seed, 3);
  }
}

// One thread begins a transaction every now and then, while the other is alone again and again.
TEST(Turns, OneThatBreaksInAgainAndAgain) {
  start();
  std::atomic<bool> ends{false};
  std::atomic<long> alone{0}, total{0};
  adds_to_both();
  std::thread worker([&] {
    while (!ends) {
      if (adds_to_both() == kIrrevocable) ++alone;
      ++total;
    }
  });
  long own = 1;
  for (int i = 0; i < 60; ++i) {
    const long seen = alone;
    for (int wait = 0; wait < 2'000 && alone < seen + 10; ++wait) std::this_thread::yield();
    adds_to_both();
    ++own;
  }
  ends = true;
  worker.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left_counter.value, own + total);
  EXPECT_GT(alone, 0);
}

}  // namespace
