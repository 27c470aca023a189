// retry() and or_else(): who waits never sleeps through a change (what waiting costs: waiting_cost_test.cpp).
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/unit/tm/attempts/waiters.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace loam::tm {
namespace {

using namespace waiters;

struct WaitingTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, WaitingTest, testing::ValuesIn(tests::variants({"table", "small_table", "shadow"})),
                         tests::variant_name);

alignas(1024) Word words[64];
Word& x = words[0];
Word& beside_x = words[1];
Word& y = words[16];
Word& z = words[32];

// A thread that waits until `word` is at least `value`. attempts: those that have looked; each that found too little runs
// again once the word has changed, however long the thread stood still in between.
template <class Driver>
std::thread waiter_for(Word& word, Word value, std::atomic<int>& attempts) {
  return std::thread([&word, value, &attempts] {
    Driver::update([&](auto& tx) {
      const bool is_less = tx.read(word) < value;
      ++attempts;
      if (is_less) Driver::wait_for_change();
    });
  });
}

// Aborts of all threads so far that no retry() asked for.
std::uint64_t conflicts() {
  const Statistics all = statistics_of_all();
  return all.aborts_total() - all.aborts[static_cast<std::size_t>(AbortCause::explicit_)];
}

TEST_P(WaitingTest, ItRunsAgainAfterAChangeAndNotBefore) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter = waiter_for<Driver>(x, 2, attempts);
    wait_until(attempts, 1);  // it has read, and must run again once x has changed
    constexpr int kUnrelated = 20;
    for (int i = 0; i < kUnrelated; ++i) set<Driver>(y, i);  // wakes it, but changes nothing that it has read
    let_it_sleep();
    const int in_vain_max = runs_in_vain<Driver>() ? kUnrelated : 0;  // no more often than others have committed
    EXPECT_LE(attempts.load(), 1 + in_vain_max);
    set<Driver>(x, 1);
    wait_until(attempts, 2);
    set<Driver>(x, 2);
    waiter.join();
    // The second may see 2 already, or meet the one who writes it.
    EXPECT_LE(attempts.load(), 3 + in_vain_max + static_cast<int>(conflicts()));
    EXPECT_GE(attempts.load(), 2);
  });
}

TEST_P(WaitingTest, TheWritesOfTheAttemptThatWaitsVanish) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      Driver::update([&](auto& tx) {
        ++attempts;
        tx.write(y, Word{9});
        tx.destroy(tx.template create<Word>(1u));
        if (tx.read(x) == 0) Driver::wait_for_change();
        tx.write(y, Word{1});
      });
    });
    wait_until(attempts, 1);
    let_it_sleep();
    EXPECT_EQ(Driver::read_only([](auto& tx) { return tx.read(y); }), 0u);
    set<Driver>(x, 1);
    waiter.join();
    EXPECT_EQ(y, 1u);
    quiesce();
    const Statistics all = statistics_of_all();
    EXPECT_EQ(all.blocks_allocated, all.blocks_freed);
  });
}

TEST_P(WaitingTest, AWordReadBesideAWordWrittenIsWaitedFor) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // Once its stripe is locked by the attempt itself, an algorithm may read a word without a trace.
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      Driver::update([&](auto& tx) {
        ++attempts;
        tx.write(x, Word{9});
        if (tx.read(beside_x) == 0) Driver::wait_for_change();
      });
    });
    wait_until(attempts, 1);
    let_it_sleep();
    set<Driver>(beside_x, 1);
    waiter.join();
    EXPECT_EQ(x, 9u);
  });
}

TEST_P(WaitingTest, NoWakeUpIsLostBetweenTheLastLookAndTheSleep) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // The only change there will ever be comes once the waiter has registered.
    tests::Interpose step("tm.registered", 0, [] { set<Driver>(x, 1); });
    Driver::update([](auto& tx) {
      if (tx.read(x) == 0) Driver::wait_for_change();
    });
    EXPECT_TRUE(step.reached());
  });
}

TEST_P(WaitingTest, NoWakeUpIsLostBetweenTheRollbackAndTheRegistration) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    tests::Interpose step("tm.aborted", 0, [] { set<Driver>(x, 1); });
    Driver::update([](auto& tx) {
      if (tx.read(x) == 0) Driver::wait_for_change();
    });
    EXPECT_TRUE(step.reached());
  });
}

TEST_P(WaitingTest, WhoIsWokenBeforeItSleptDoesNotSleep) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Between its look and its sleep it is woken, and another one goes to sleep for something else.
    std::thread another;
    tests::Interpose step("tm.sleeping", 0, [&] {
      set<Driver>(x, 1);
      std::atomic<bool> sleeps{false};
      another = std::thread([&] {
        const tests::Interpose registered("tm.registered", 0, [&] { sleeps = true; });
        Driver::update([](auto& tx) {
          if (tx.read(y) == 0) Driver::wait_for_change();
        });
      });
      while (!sleeps) platform::yield();
    });
    Driver::update([](auto& tx) {
      if (tx.read(x) == 0) Driver::wait_for_change();
    });
    EXPECT_TRUE(step.reached());
    set<Driver>(y, 1);
    another.join();
  });
}

// The waiter is asleep for sure: before its first sleep a process may need 20 ms for the system's barrier.
TEST_P(WaitingTest, ACommitThatHasWrittenAnyOfItsStripesWakes) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> sleeping{0};
    std::thread waiter([&sleeping] {
      tests::Interpose falls_asleep("tm.sleeping", 0, [&sleeping] { ++sleeping; });
      Driver::update([](auto& tx) {
        if (tx.read(z) == 0) Driver::wait_for_change();
      });
    });
    wait_until(sleeping, 1);
    let_it_sleep();
    Driver::update([](auto& tx) {
      for (Word* word : {&x, &y, &z}) tx.write(*word, Word{1});
    });
    waiter.join();
  });
}

TEST_P(WaitingTest, NoWakeUpIsLostBetweenTwoThatWaitForEachOther) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr Word kTurns = 300;
    const auto play = [](Word parity) {
      for (Word turn = parity; turn < kTurns; turn += 2)
        Driver::update([&](auto& tx) {
          if (tx.read(x) != turn) Driver::wait_for_change();
          tx.write(x, turn + 1);
        });
    };
    std::thread even([&] { play(0); }), odd([&] { play(1); });
    even.join();
    odd.join();
    EXPECT_EQ(x, kTurns);
  });
}

TEST_P(WaitingTest, AReadOnlyTransactionWaits) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      EXPECT_EQ(Driver::read_only([&](auto& tx) {
                  ++attempts;
                  const Word seen = tx.read(x);
                  if (seen == 0) Driver::wait_for_change();
                  return seen;
                }),
                7u);
    });
    wait_until(attempts, 2);  // the second one has a read set
    set<Driver>(x, 7);
    waiter.join();
  });
}

TEST_P(WaitingTest, WhatRanAloneInPlaceWakes) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter = waiter_for<Driver>(x, 1, attempts);
    wait_until(attempts, 1);
    let_it_sleep();
    Driver::irrevocable([](auto& tx) { tx.write(x, Word{1}); });
    waiter.join();
  });
}

TEST_P(WaitingTest, AbortHandlersRunBeforeTheWaitAndLeaveItsReadSetAlone) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // What the handler has read changes first, then what the attempt has read: only the latter may wake it. Where any
    // commit wakes, the handler's does too: the body runs once more in vain, and what it waits for comes after that.
    const bool in_vain = runs_in_vain<Driver>();
    int attempts = 0;
    tests::Interpose unrelated("tm.registered", 0, [] { set<Driver>(z, 5); });
    tests::Interpose related(in_vain ? "tm.aborted" : "tm.sleeping", in_vain ? 1 : 0, [] { set<Driver>(x, 1); });
    Driver::update([&](auto& tx) {
      ++attempts;
      tx.on_abort([] { Driver::update([](auto& own) { own.write(z, own.read(z) + 1); }); });
      if (tx.read(x) == 0) Driver::wait_for_change();
    });
    EXPECT_TRUE(unrelated.reached());
    EXPECT_TRUE(related.reached());
    EXPECT_EQ(attempts, in_vain ? 3 : 2);
    EXPECT_EQ(z, in_vain ? 6u : 5u) << "the handler ran once for each attempt that waited, before the wait";
  });
}

// ---- or_else

TEST_P(WaitingTest, TheSecondBranchRunsAsIfTheFirstHadNot) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.write(z, Word{1});
      Driver::or_else(
          [](auto& first) {
            first.write(z, Word{2});
            first.write(y, Word{2});
            if (first.read(x) == 0) Driver::wait_for_change();
          },
          [](auto& second) {
            EXPECT_EQ(second.read(z), 1u);
            EXPECT_EQ(second.read(y), 0u);
            second.write(y, Word{3});
          });
      EXPECT_EQ(tx.read(z), 1u);
    });
    EXPECT_EQ(y, 3u);
    Driver::update([](auto&) {
      Driver::or_else([](auto& first) { first.write(y, Word{4}); },
                      [](auto&) { ADD_FAILURE() << "the first branch has not retried"; });
    });
    EXPECT_EQ(y, 4u);
    EXPECT_EQ(statistics().aborts_total(), 0u);
  });
}

TEST_P(WaitingTest, WhenBothBranchesRetryAChangeOfEitherWakes) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (Word* const changed : {&x, &y}) {
      x = y = 0;
      std::atomic<int> attempts{0}, in_vain{0};
      int taken = 0;
      std::thread waiter([&] {
        Driver::update([&](auto&) {
          ++attempts;
          Driver::or_else(
              [&](auto& first) {
                first.write(words[2], Word{1});
                if (first.read(x) == 0) Driver::wait_for_change();
                taken = 1;
              },
              [&](auto& second) {
                const bool is_zero = second.read(y) == 0;
                ++in_vain;
                if (is_zero) Driver::wait_for_change();
                taken = 2;
              });
        });
      });
      wait_until(in_vain, 1);  // both branches have read
      let_it_sleep();
      set<Driver>(*changed, 1);
      waiter.join();
      EXPECT_EQ(taken, changed == &x ? 1 : 2);
      EXPECT_GE(attempts.load(), 2);
      EXPECT_LE(attempts.load(), 2 + static_cast<int>(conflicts()));
    }
  });
}

TEST_P(WaitingTest, OrElseNestsAndRetryPassesClosedParts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int branch = 0;
    Driver::update([&](auto&) {
      Driver::or_else(
          [&](auto&) {
            Driver::or_else(
                [](auto& tx) {
                  if (tx.read(x) == 0) Driver::wait_for_change();
                },
                [](auto&) {
                  // A closed part that retries is not a cancelled one: who is around it retries.
                  Driver::closed([](auto& part) {
                    part.write(z, Word{1});
                    if (part.read(y) == 0) Driver::wait_for_change();
                  });
                  ADD_FAILURE() << "retry() ended the closed part alone";
                });
          },
          [&](auto& tx) {
            EXPECT_EQ(tx.read(z), 0u);
            branch = 3;
          });
    });
    EXPECT_EQ(branch, 3);
  });
}

TEST_P(WaitingTest, ToWaitForNothingIsAnError) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(Driver::update([](auto&) { Driver::wait_for_change(); }),
                 "retry\\(\\) in a transaction that has read");
    EXPECT_DEATH(Driver::wait_for_change(), "retry\\(\\) outside of transactions");
  });
}

}  // namespace
}  // namespace loam::tm
