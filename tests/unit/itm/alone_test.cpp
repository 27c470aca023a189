// The only thread with transactions runs plain code; when a second one comes, both go through the algorithm
// (runtime/itm/alone.hpp).
#include "tests/unit/itm/threads.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>
#include <thread>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
[[gnu::transaction_pure]] unsigned _ITM_inTransaction();
[[gnu::transaction_pure]] std::uint64_t _ITM_getTransactionId();
[[gnu::transaction_pure]] void _ITM_addUserCommitAction(void (*)(void*), std::uint64_t, void*);
[[gnu::transaction_pure]] void _ITM_addUserUndoAction(void (*)(void*), void*);
}

namespace loam::tests {
extern std::atomic<long> blocks;
}

namespace {

using namespace loam::tests;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr unsigned kOutside = 0, kRetryable = 1, kIrrevocable = 2;

Padded left_counter, right_counter;

[[gnu::noinline]] unsigned how_it_runs() {
  unsigned how = kOutside;
  __transaction_atomic {
    how = _ITM_inTransaction();
    left_counter.value += 1;
  }
  return how;
}

// A thread that has begun a transaction, and lives.
class Second {
 public:
  Second()
      : thread_([this] {
          how_it_runs();
          registered_ = true;
          while (!ends_) std::this_thread::yield();
        }) {
    while (!registered_) std::this_thread::yield();
  }
  Second(const Second&) = delete;
  Second& operator=(const Second&) = delete;
  ~Second() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> registered_{false}, ends_{false};
  std::thread thread_;
};

TEST(Alone, ATransactionRunsPlainCodeUntilThereIsASecondThread) {
  EXPECT_EQ(how_it_runs(), kIrrevocable);
  {
    const Second second;
    EXPECT_EQ(how_it_runs(), kRetryable);
  }
  EXPECT_EQ(how_it_runs(), kIrrevocable) << "the second one has ended";
}

[[gnu::transaction_pure, gnu::noinline]] long blocks_now() { return blocks; }

long* doomed;

// How many blocks a delete has freed while its transaction still runs.
[[gnu::noinline]] long freed_at_once() {
  doomed = new long(1);
  const long before = blocks;
  long inside = 0;
  __transaction_atomic {
    delete doomed;
    inside = blocks_now();
  }
  return before - inside;
}

TEST(Alone, PlainCodeHasNoCallsOfTheLibrary) {
  EXPECT_EQ(freed_at_once(), 1);
  const char* const algorithm = std::getenv("LOAM_ITM_ALGORITHM");
  if (algorithm != nullptr && std::string_view(algorithm) == "hybrid-norec") return;  // hardware runs it as well
  const Second second;
  EXPECT_EQ(freed_at_once(), 0);
}

// ---- what a transaction with plain code meets ------------------------------------------------------------------------

long outer_value, inner_value;

[[gnu::transaction_safe, gnu::noinline]] void adds_inside(bool cancel) {
  __transaction_atomic {
    inner_value += 1;
    if (cancel) __transaction_cancel;
    inner_value += 10;
  }
}
[[gnu::noinline]] unsigned adds_around(bool cancel) {
  unsigned how = kOutside;
  __transaction_atomic {
    outer_value += 1;
    adds_inside(cancel);
    outer_value += 1;
    adds_inside(false);
    how = _ITM_inTransaction();
  }
  return how;
}

TEST(Alone, ANestedCancelTakesItsPartBack) {
  outer_value = inner_value = 0;
  EXPECT_EQ(adds_around(true), kIrrevocable);
  EXPECT_EQ(outer_value, 2);
  EXPECT_EQ(inner_value, 11);
  EXPECT_EQ(adds_around(false), kIrrevocable);
  EXPECT_EQ(inner_value, 33);
  const Second second;  // nobody waits for what is over
  EXPECT_EQ(adds_around(true), kRetryable);
  EXPECT_EQ(outer_value, 6);
  EXPECT_EQ(inner_value, 44);
}

[[gnu::noinline]] long cancelled_outermost() {
  long local = 1;
  __transaction_atomic {
    local = 2;
    outer_value = 100;
    if (local == 2) __transaction_cancel;
  }
  return local;
}

TEST(Alone, ATransactionThatCanBeCancelledGoesThroughTheAlgorithm) {
  outer_value = 5;
  EXPECT_EQ(cancelled_outermost(), 1);
  EXPECT_EQ(outer_value, 5);
  EXPECT_EQ(how_it_runs(), kIrrevocable);
}

SAFE void nest(int depth) {
  __transaction_atomic {
    if (depth > 0) nest(depth - 1);
    outer_value += 1;
  }
}

TEST(Alone, NestedOnesAreFlat) {
  outer_value = 0;
  nest(50);
  EXPECT_EQ(outer_value, 51);
  EXPECT_EQ(_ITM_inTransaction(), kOutside);
}

SAFE void throws(int number) {
  if (number % 2 == 0) throw number;
}

TEST(Alone, AnExceptionCommits) {
  outer_value = 0;
  int caught = 0;
  for (int i = 0; i < 10; ++i) {
    try {
      __transaction_atomic {
        outer_value += 1;
        throws(i);
      }
    } catch (int) {
      ++caught;
    }
    ASSERT_EQ(_ITM_inTransaction(), kOutside);
  }
  EXPECT_EQ(caught, 5);
  EXPECT_EQ(outer_value, 10);
}

[[gnu::transaction_unsafe, gnu::noinline]] void unsafe() { outer_value += 1; }

TEST(Alone, AnUnsafeCall) {
  outer_value = 0;
  for (int i = 0; i < 10; ++i) {
    __transaction_relaxed {
      unsafe();
      if (i % 2 == 0) outer_value += 1;
    }
  }
  EXPECT_EQ(outer_value, 15);
}

unsigned how_actions_ran;
int actions, undone;
void acts(void*) { how_actions_ran = _ITM_inTransaction(), ++actions, how_it_runs(); }
void undoes(void*) { ++undone; }

TEST(Alone, CommitActionsRunAfterItAndUndoActionsNever) {
  actions = undone = 0;
  how_actions_ran = 7;
  __transaction_atomic {
    _ITM_addUserCommitAction(acts, 1, nullptr);
    _ITM_addUserUndoAction(undoes, nullptr);
    outer_value += 1;
  }
  EXPECT_EQ(how_actions_ran, kOutside);
  cancelled_outermost();
  how_it_runs();
  EXPECT_EQ(actions, 1);
  EXPECT_EQ(undone, 0);
}

TEST(Alone, EachTransactionHasItsNumber) {
  std::uint64_t first = 0, second = 0;
  __transaction_atomic {
    first = _ITM_getTransactionId();
    outer_value += 1;
  }
  __transaction_atomic {
    second = _ITM_getTransactionId();
    outer_value += 1;
  }
  EXPECT_GT(first, 1u);
  EXPECT_NE(first, second);
}

// ---- the switch ------------------------------------------------------------------------------------------------------------

std::function<void()> meanwhile;
[[gnu::transaction_pure, gnu::noinline]] void run_meanwhile() { meanwhile(); }

[[gnu::noinline]] void both_with_a_pause_between() {
  __transaction_atomic {
    left_counter.value += 1;
    run_meanwhile();
    right_counter.value += 1;
  }
}

[[gnu::noinline]] long difference() {
  long found = 0;
  __transaction_atomic { found = left_counter.value - right_counter.value; }
  return found;
}

TEST(Alone, WhoComesSecondWaitsForTheTransactionThatRuns) {
  left_counter.value = right_counter.value = 0;
  std::atomic<bool> begins{false}, over{false};
  long seen = 7;
  std::thread second;
  meanwhile = [&] {
    second = std::thread([&] {
      begins = true;
      seen = difference();
      over = true;
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_FALSE(over);
  };
  both_with_a_pause_between();
  second.join();
  EXPECT_TRUE(over);
  EXPECT_EQ(seen, 0);
}

TEST(Alone, TheChildOfAForkSeesWholeTransactionsAndRunsItsOwn) {
  left_counter.value = right_counter.value = 0;
  std::atomic<bool> begins{false};
  int status = -1;
  std::thread forking;  // it has had no transaction
  meanwhile = [&] {
    forking = std::thread([&] {
      begins = true;
      const pid_t child = ::fork();
      if (child == 0) ::_exit(difference() == 0 && how_it_runs() == kIrrevocable ? 0 : 3);
      ::waitpid(child, &status, 0);
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(30));
  };
  both_with_a_pause_between();
  forking.join();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(how_it_runs(), kIrrevocable);
}

std::atomic<long> torn{0};
[[gnu::transaction_pure, gnu::noinline]] void note_torn() { ++torn; }

[[gnu::noinline]] unsigned adds_to_both() {
  unsigned how = kOutside;
  __transaction_atomic {
    if (left_counter.value != right_counter.value) note_torn();
    left_counter.value += 1;
    right_counter.value += 1;
    how = _ITM_inTransaction();
  }
  return how;
}

// Threads come and go by chance while one runs transactions all the time.
void come_and_go(unsigned seed) {
  left_counter.value = right_counter.value = 0;
  torn = 0;
  std::atomic<bool> ends{false};
  std::atomic<long> added{0};
  std::thread visitors([&] {
    std::mt19937 random(seed);
    for (int visit = 0; visit < 40; ++visit) {
      const unsigned count = 1 + random() % 3, transactions = 1 + random() % 400;
      on_threads(static_cast<int>(count), [&](int) {
        for (unsigned n = 0; n < transactions; ++n) adds_to_both();
        added += transactions;
      });
      std::this_thread::sleep_for(microseconds(random() % 300));
    }
    ends = true;
  });
  long alone = 0, beside = 0;
  while (!ends) ++(adds_to_both() == kIrrevocable ? alone : beside);
  visitors.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left_counter.value, added + alone + beside);
  EXPECT_EQ(right_counter.value, left_counter.value);
  EXPECT_GT(alone, 0);
  EXPECT_GT(beside, 0);
}

TEST(Alone, ThreadsThatComeAndGoLoseNothing) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    come_and_go(seed);
  }
}

// A key's destructor may run transactions after the library has given the thread up.
pthread_key_t late_key;
void late(void*) { how_it_runs(); }

TEST(Alone, ATransactionAtTheEndOfAThreadIsNotForgotten) {
  ASSERT_EQ(pthread_key_create(&late_key, late), 0);
  on_threads(3, [](int) {
    how_it_runs();
    pthread_setspecific(late_key, &late_key);
  });
  EXPECT_EQ(how_it_runs(), kIrrevocable);
  pthread_key_delete(late_key);
}

}  // namespace
