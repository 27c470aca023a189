// What has no limit of its own: threads, nesting, actions; and actions that run transactions or add actions
// (docs/libitm.md).
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <pthread.h>

extern "C" {
[[gnu::transaction_pure]] void _ITM_addUserCommitAction(void (*)(void*), std::uint64_t, void*);
[[gnu::transaction_pure]] void _ITM_addUserUndoAction(void (*)(void*), void*);
[[gnu::transaction_pure]] unsigned _ITM_inTransaction();
}

namespace {

using namespace loam::tests;

long number, other_number;

// Runs it on a thread with a stack of its own size.
template <class Body>
void on_a_thread(std::size_t stack_bytes, Body body) {
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, stack_bytes), 0);
  pthread_t thread{};
  const auto run = [](void* called) -> void* {
    (*static_cast<Body*>(called))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &body), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  ::pthread_attr_destroy(&attributes);
}

// ---- nesting ----------------------------------------------------------------------------------------------------------

SAFE void nest(int depth) {
  __transaction_atomic {
    if (depth > 0) nest(depth - 1);
    number += 1;
  }
}
// Each level can be cancelled; each third is.
SAFE void nest_and_cancel(int depth) {
  __transaction_atomic {
    number += 1;
    if (depth > 0) nest_and_cancel(depth - 1);
    if (depth % 3 == 2) __transaction_cancel;
  }
}

TEST(Limits, NestingIsAsDeepAsTheStack) {
  number = 0;
  on_a_thread(std::size_t{256} << 20, [] { nest(100'000); });
  EXPECT_EQ(number, 100'001);
  EXPECT_EQ(_ITM_inTransaction(), 0u);
}

TEST(Limits, PartsThatCanBeCancelledNestAsDeep) {
  number = 0;
  on_a_thread(std::size_t{256} << 20, [] { nest_and_cancel(10'000); });
  EXPECT_EQ(number, 2) << "level 9998 is cancelled, with all that is inside it";
  nest_and_cancel(1);
  EXPECT_EQ(number, 4);
}

// Flat levels around a part, within it and behind it.
SAFE void mixed(int flat, int inside, bool cancel) {
  __transaction_atomic {
    number += 1;
    if (flat > 0) {
      mixed(flat - 1, inside, cancel);
    } else {
      __transaction_atomic {
        nest(inside);
        other_number += 1;
        if (cancel) __transaction_cancel;
      }
      nest(3);
    }
    other_number += 1;
  }
}

TEST(Limits, APartAmongFlatLevelsIsTakenBackAlone) {
  for (const bool cancel : {false, true}) {
    number = other_number = 0;
    on_a_thread(std::size_t{64} << 20, [=] { mixed(300, 500, cancel); });
    EXPECT_EQ(number, 301 + 4 + (cancel ? 0 : 501));
    EXPECT_EQ(other_number, 301 + (cancel ? 0 : 1));
  }
}

// ---- actions ----------------------------------------------------------------------------------------------------------

constexpr int kActions = 10'000;
std::vector<long> order;
void note(void* value) { order.push_back(static_cast<long>(reinterpret_cast<std::intptr_t>(value))); }
[[gnu::transaction_pure, gnu::noinline]] void add_commit_actions(long from, long to) {
  for (long i = from; i < to; ++i) _ITM_addUserCommitAction(note, 1, reinterpret_cast<void*>(i));
}
[[gnu::transaction_pure, gnu::noinline]] void add_undo_actions(long from, long to) {
  for (long i = from; i < to; ++i) _ITM_addUserUndoAction(note, reinterpret_cast<void*>(i));
}
[[gnu::transaction_pure, gnu::noinline]] void on_commit(void (*call)(void*), long value) {
  _ITM_addUserCommitAction(call, 1, reinterpret_cast<void*>(value));
}
[[gnu::transaction_pure, gnu::noinline]] void on_undo(void (*call)(void*), long value) {
  _ITM_addUserUndoAction(call, reinterpret_cast<void*>(value));
}

TEST(Limits, TenThousandActionsRunInTheirOrder) {
  order.clear();
  __transaction_atomic {
    number += 1;
    add_commit_actions(0, kActions);
    add_undo_actions(kActions, 2 * kActions);
    if (number < 0) __transaction_cancel;
  }
  ASSERT_EQ(order.size(), std::size_t{kActions});
  for (int i = 0; i < kActions; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  order.clear();
  __transaction_atomic {
    number += 1;
    add_commit_actions(0, kActions);
    add_undo_actions(0, kActions);
    __transaction_cancel;
  }
  ASSERT_EQ(order.size(), std::size_t{kActions});
  for (int i = 0; i < kActions; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], kActions - 1 - i);
}

TEST(Limits, ActionsOfACancelledPartAreForgotten) {
  order.clear();
  __transaction_atomic {
    number += 1;
    add_commit_actions(0, 2);
    __transaction_atomic {
      number += 1;
      add_commit_actions(100, 200);
      add_undo_actions(500, 502);
      __transaction_cancel;
    }
    add_commit_actions(2, 3);
    __transaction_atomic {
      number += 1;
      add_commit_actions(3, 4);
      add_undo_actions(600, 602);
      if (number < 0) __transaction_cancel;
    }
  }
  EXPECT_EQ(order, (std::vector<long>{501, 500, 0, 1, 2, 3}));
}

// An action whose transaction adds an action, and so on.
void act_and_add(void* value) {
  const auto left = static_cast<long>(reinterpret_cast<std::intptr_t>(value));
  order.push_back(left);
  if (left == 0) return;
  __transaction_atomic {
    number += 1;
    on_commit(act_and_add, left - 1);
    on_commit(note, left + 1000);
  }
}

TEST(Limits, AnActionAddsActionsInATransactionOfItsOwn) {
  order.clear();
  number = 0;
  __transaction_atomic {
    number += 1;
    on_commit(act_and_add, 3);
    on_commit(note, 77);
  }
  EXPECT_EQ(order, (std::vector<long>{3, 2, 1, 0, 1001, 1002, 1003, 77}));
  EXPECT_EQ(number, 4);
  order.clear();
  __transaction_atomic { number += 1; }
  EXPECT_TRUE(order.empty());
}

// Undo actions that run transactions: the attempt behind them goes on with its own data.
void undo_in_transactions(void* value) {
  note(value);
  __transaction_atomic {
    other_number += 1;
    add_undo_actions(900, 901);
    if (other_number < 0) __transaction_cancel;
  }
  __transaction_atomic {
    other_number += 10;
    add_undo_actions(800, 801);
    __transaction_cancel;
  }
}
[[gnu::noinline]] long cancels_with_actions() {
  long local = 5;
  __transaction_atomic {
    local = 6;
    number += 100;
    add_undo_actions(1, 2);
    on_undo(undo_in_transactions, 2);
    on_undo(undo_in_transactions, 3);
    add_undo_actions(4, 5);
    __transaction_cancel;
  }
  return local;
}

TEST(Limits, AnUndoActionRunsTransactionsOfItsOwn) {
  order.clear();
  number = other_number = 0;
  EXPECT_EQ(cancels_with_actions(), 5);
  EXPECT_EQ(order, (std::vector<long>{4, 3, 800, 2, 800, 1}));
  EXPECT_EQ(number, 0);
  EXPECT_EQ(other_number, 2);
}

// Attempts that conflict, with undo actions that run transactions meanwhile.
void count_undone(void*) {
  __transaction_atomic { other_number += 1; }
}

TEST(Limits, AttemptsBeginAgainBehindUndoActionsWithTransactions) {
  number = other_number = 0;
  std::atomic<long> wrong{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 2'000; ++i) {
      long before = 0, local = 1;
      __transaction_atomic {
        on_undo(count_undone, 0);
        before = number;
        local += 1;
        number = before + 1;
      }
      if (local != 2) ++wrong;
    }
  });
  EXPECT_EQ(number, 8'000);
  EXPECT_EQ(wrong, 0);
}

// Undo actions of a part that is cancelled alone: to them the part has not been, and what their transactions write belongs
// to the transactions around the part.
struct Around {
  long *local, **block;
};
long seen_local, seen_number;
void look_behind_the_part(void* argument) {
  const Around around = *static_cast<Around*>(argument);
  seen_local = *around.local;
  __transaction_atomic {
    seen_number = number;
    other_number += 1;
    **around.block = 8;
  }
}
SAFE long* make_block(long value) { return new long(value); }
[[gnu::noinline]] long cancels_a_part_with_an_action(bool cancels_all) {
  long local = 5, given = 0, *block = nullptr;
  Around around{&local, &block};
  __transaction_atomic {
    block = make_block(7);  // a compiler does not know what actions change
    number += 1;
    __transaction_atomic {
      local = 6;
      number += 1;
      on_undo(look_behind_the_part, reinterpret_cast<long>(&around));
      __transaction_cancel;
    }
    given = *block + other_number;
    delete block;
    if (cancels_all) __transaction_cancel;
  }
  return given;
}

TEST(Limits, UndoActionsOfAPartSeeNothingOfItAndTheirTransactionsStay) {
  number = other_number = 0;
  EXPECT_EQ(cancels_a_part_with_an_action(false), 9);
  EXPECT_EQ(seen_local, 5);
  EXPECT_EQ(seen_number, 1);
  EXPECT_EQ(number, 1);
  EXPECT_EQ(other_number, 1);
  EXPECT_EQ(cancels_a_part_with_an_action(true), 0);
  EXPECT_EQ(seen_number, 1) << "taken back with the transaction";
  EXPECT_EQ(number, 1);
  EXPECT_EQ(other_number, 1);
}

// Such an action ends its attempt: the next attempt undoes nothing again.
long acted, unsafe_steps;
[[gnu::transaction_unsafe, gnu::noinline]] void unsafe_step() { ++unsafe_steps; }
void runs_alone_from_here(void*) {
  ++acted;
  __transaction_relaxed { unsafe_step(); }
}
[[gnu::noinline]] void cancels_a_part_that_restarts() {
  __transaction_atomic {
    number += 1;
    __transaction_atomic {
      long* const block = new long(number);
      number += *block;
      on_undo(runs_alone_from_here, 0);
      __transaction_cancel;
    }
  }
}

TEST(Limits, AnUndoActionOfAPartThatEndsItsAttemptIsNotCalledForItAgain) {
  number = acted = 0;
  cancels_a_part_that_restarts();
  EXPECT_EQ(number, 1);
  EXPECT_EQ(acted, 2) << "one of each attempt";
}

// Last, because commits look at every thread that ever lived at once.
// ---- threads ----------------------------------------------------------------------------------------------------------

[[gnu::noinline]] void* adds_twice(void* over) {
  auto& ends = *static_cast<std::atomic<bool>*>(over);
  __transaction_atomic { number += 1; }
  while (!ends) ends.wait(false);
  __transaction_atomic { number += 1; }
  return nullptr;
}

TEST(Limits, TwoThousandThreadsLive) {
  constexpr int kThreads = 2'000;
  number = 0;
  std::atomic<bool> ends{false};
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, std::size_t{64} << 10), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread{};
    if (::pthread_create(&thread, &attributes, adds_twice, &ends) != 0) break;  // the system allows fewer
    threads.push_back(thread);
  }
  EXPECT_GT(threads.size(), 1'024u) << "too few to tell";
  long begun = 0;
  while (begun != static_cast<long>(threads.size())) {
    __transaction_atomic { begun = number; }
    std::this_thread::yield();
  }
  ends = true;
  ends.notify_all();
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  EXPECT_EQ(number, 2L * static_cast<long>(threads.size()));
}

}  // namespace
