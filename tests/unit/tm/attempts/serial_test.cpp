// Transactions that run alone: irrevocable ones, and those that have aborted too often.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

std::vector<tests::Variant> with_privatization() {
  auto all = tests::variants({"table", "small_table"});
  for (tests::Variant each : tests::variants({"table"})) {
    each.mapping = "table_privatizing";
    each.privatization = Privatization::commit;
    all.push_back(each);
  }
  return all;
}

struct SerialTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, SerialTest, testing::ValuesIn(with_privatization()), tests::variant_name);

using tests::words, tests::x, tests::y, tests::z;

template <class Driver>
Word value_of(const Word& word) {
  return Driver::read_only([&](auto& tx) { return tx.read(word); });
}

TEST_P(SerialTest, NobodyRunsBesideAnIrrevocableTransaction) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<bool> stop{false};
    std::vector<std::thread> others;
    for (int t = 0; t < 3; ++t)
      others.emplace_back([&] {
        while (!stop.load(std::memory_order_relaxed))
          Driver::update([](auto& tx) {
            tx.write(x, tx.read(x) + 1);
            tx.write(y, tx.read(y) + 1);
          });
      });
    for (int round = 0; round < 50; ++round)
      Driver::irrevocable([](auto& tx) {
        // Plain accesses: what calls to code without tx would do.
        const Word before = *const_cast<volatile Word*>(&x);
        EXPECT_EQ(before, *const_cast<volatile Word*>(&y)) << "a commit is being written back";
        platform::sleep_ns(50'000);
        EXPECT_EQ(before, *const_cast<volatile Word*>(&x)) << "somebody committed";
        x = before + 1;
        tx.write(y, before + 1);
      });
    stop.store(true);
    for (auto& other : others) other.join();
    EXPECT_EQ(x, y);
  });
}

TEST_P(SerialTest, TwoAtOnceRunOneAfterTheOther) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int inside;
    inside = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i)
          Driver::irrevocable([](auto& tx) {
            EXPECT_EQ(++inside, 1);
            tx.write(x, tx.read(x) + 1);
            platform::yield();
            --inside;
          });
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(x, 200u);
    EXPECT_EQ(statistics_of_all().commits, 200u);
  });
}

TEST_P(SerialTest, WithinATransactionThatOneRunsAgainAlone) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int outer = 0, inner = 0;
    const Word result = Driver::update([&](auto& tx) {
      ++outer;
      tx.write(x, tx.read(x) + 1);
      Driver::irrevocable([&](auto& own) {
        ++inner;
        EXPECT_EQ(x, 1u) << "in place";
        own.write(y, own.read(x) + 1);
      });
      EXPECT_EQ(Driver::read_only([](auto& own) { return own.read(y); }), 2u);
      return tx.read(y);
    });
    EXPECT_EQ(result, 2u);
    EXPECT_EQ(outer, 2);
    EXPECT_EQ(inner, 1);
    EXPECT_EQ(Driver::read_only([](auto& tx) { return Driver::irrevocable([&](auto&) { return tx.read(y); }); }), 2u);
    EXPECT_FALSE(serial::closed());
    EXPECT_EQ(value_of<Driver>(x), 1u);
  });
}

TEST_P(SerialTest, AnExceptionLeavesWhatWasDone) {
  tests::in_variant(GetParam(), []<class Driver>() {
    EXPECT_THROW(Driver::irrevocable([](auto& tx) {
                   tx.write(x, Word{1});
                   throw std::runtime_error("at the top");
                 }),
                 std::runtime_error);
    EXPECT_EQ(x, 1u);
    EXPECT_THROW(Driver::update([](auto& tx) {
                   tx.write(y, Word{1});
                   Driver::irrevocable([](auto& own) { own.write(x, Word{2}); });
                   throw std::runtime_error("after the irrevocable part");
                 }),
                 std::runtime_error);
    EXPECT_EQ(x, 2u);
    EXPECT_EQ(y, 1u);
    EXPECT_FALSE(serial::closed());
    EXPECT_EQ(statistics().commits, 2u);
  });
}

// The first attempt asks to run alone; the second finds the world changed and takes another way.
TEST_P(SerialTest, BeforeItsIrrevocablePartATransactionCanStillBeTakenBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    enum class Way { cancel, exception, commit_on_throw, cancel_part, throw_through_part };
    for (const Way way :
         {Way::cancel, Way::exception, Way::commit_on_throw, Way::cancel_part, Way::throw_through_part}) {
      x = 1, y = 2;
      int runs = 0;
      const auto body = [&](auto& tx) {
        const bool first = runs++ == 0;
        tx.write(x, Word{10});
        tx.template create<Word>(3u);
        if (first) Driver::irrevocable([](auto&) { ADD_FAILURE() << "not yet alone"; });
        EXPECT_EQ(x, 10u) << "in place";
        if (way == Way::cancel) Driver::cancel();
        if (way == Way::exception || way == Way::commit_on_throw) throw std::runtime_error("before");
        const auto part = [&](auto& own) {
          own.write(x, Word{20});
          own.write(y, Word{20});
          if (way == Way::throw_through_part) throw std::runtime_error("in a part");
          Driver::cancel();
        };
        if (way == Way::cancel_part) {
          EXPECT_FALSE(Driver::closed(part));
        } else {
          EXPECT_THROW(Driver::closed(part), std::runtime_error);
        }
        EXPECT_EQ(tx.read(x), 10u);
        EXPECT_EQ(tx.read(y), 2u);
      };
      const auto blocks = [] { return statistics().blocks_allocated - statistics().blocks_freed; };
      const auto before = blocks();
      if (way == Way::cancel) {
        EXPECT_THROW(Driver::update(body), Cancelled);
      } else if (way == Way::exception) {
        EXPECT_THROW(Driver::update(body), std::runtime_error);
      } else if (way == Way::commit_on_throw) {
        EXPECT_THROW(Driver::template update<OnThrow::commit>(body), std::runtime_error);
      } else {
        Driver::update(body);
      }
      const bool undone = way == Way::cancel || way == Way::exception;
      EXPECT_EQ(x, undone ? 1u : 10u) << static_cast<int>(way);
      EXPECT_EQ(y, 2u);
      EXPECT_EQ(blocks() - before, undone ? 0u : 1u);
      EXPECT_EQ(runs, 2);
      EXPECT_FALSE(serial::closed());
    }
  });
}

TEST_P(SerialTest, ToRetryBeforeItsIrrevocablePartGoesBackToWaiting) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // "Wait until there is something, then print it": between the first attempt and the one alone it is gone.
    x = 1;
    std::atomic<int> runs{0};
    std::atomic<bool> looked_again{false};
    Word printed = 0;
    std::thread consumer([&] {
      Driver::update([&](auto& tx) {
        const int run = ++runs;
        tx.write(y, Word{run + 0u});
        const Word there = run == 2 ? 0 : tx.read(x);
        if (run == 3) looked_again = true;
        if (there == 0) {
          tx.read(x);
          Driver::wait_for_change();
        }
        if (run == 3 && there == 1) Driver::wait_for_change();  // the ordinary attempt finds it gone as well
        Driver::irrevocable([&](auto&) { printed = there; });
        tx.write(x, Word{0});
      });
    });
    while (!looked_again) platform::yield();
    Driver::update([](auto& tx) { tx.write(x, Word{2}); });
    consumer.join();
    EXPECT_EQ(printed, 2u);
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(runs.load(), 5);
  });
}

TEST_P(SerialTest, OrElseChoosesAloneAsWell) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Word taken = 0;
    Driver::update([&](auto& tx) {
      Driver::or_else(
          [](auto& first) {
            first.write(y, Word{1});
            if (first.read(x) == 0) Driver::wait_for_change();
          },
          [&](auto& second) {
            EXPECT_EQ(second.read(y), 0u);
            Driver::irrevocable([&](auto&) { taken = 2; });
          });
      tx.write(z, Word{1});
    });
    EXPECT_EQ(taken, 2u);
    EXPECT_EQ(y, 0u);
    EXPECT_EQ(z, 1u);
  });
}

TEST_P(SerialTest, AfterItsIrrevocablePartNothingTakesItBack) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(Driver::irrevocable([](auto&) { Driver::cancel(); }), "cancel\\(\\) in an irrevocable transaction");
    EXPECT_DEATH(Driver::irrevocable([](auto&) { Driver::wait_for_change(); }),
                 "retry\\(\\) in an irrevocable transaction");
    EXPECT_DEATH(Driver::update([](auto&) {
                   Driver::closed([](auto&) {
                     Driver::irrevocable([](auto&) {});
                     Driver::cancel();
                   });
                 }),
                 "cancel\\(\\) in an irrevocable transaction");
  });
}

TEST_P(SerialTest, MemoryAndHandlersFollowTheOutcome) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int calls;
    calls = 0;
    Driver::irrevocable([](auto& tx) {
      tx.destroy(tx.template create<Word>(1u));
      tx.on_abort([] { calls += 100; });
      tx.on_commit([] {
        // The gate is open: another thread's transaction, which this waits for, goes through.
        std::thread([] { Driver::update([](auto& own) { own.write(z, Word{1}); }); }).join();
        calls += serial::closed() ? 10 : 1;
      });
    });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(z, 1u);
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(statistics().blocks_freed, 1u);
  });
}

// ---- after too many aborts

// Makes an attempt abort: another thread adds one to x, which the attempt has read, or which it is about to read where
// nobody can change what was read. The caller leaves its body.
template <class Driver>
struct Disturbance {
  template <class Tx>
  void of(Tx& tx) {
    if constexpr (readers_block_writers<typename Driver::Uses>()) {
      change.emplace(x, x + 1);
      tx.read(x);
    } else {
      const Word seen = tx.read(x);
      std::thread([] { Driver::update([](auto& other) { other.write(x, other.read(x) + 1); }); }).join();
      tx.write(x, seen + 1);
    }
  }
  std::optional<tests::ChangesOnce<Driver>> change;
};

// Runs body(tx) once its attempt runs behind the gate: each one before is made to abort.
template <class Driver, class Body>
void serialised(Body&& body) {
  Disturbance<Driver> disturbance;
  Driver::update([&](auto& tx) {
    if (!serial::closed()) return disturbance.of(tx);
    tx.read(x);
    body(tx);
  });
}

struct SerialisedTest : testing::TestWithParam<tests::Variant> {
  void SetUp() override {
    if (tests::readers_block_writers(GetParam())) LOAM_NEEDS_POINTS();
  }
};
std::vector<tests::Variant> serialising() {
  auto all = tests::variants({"table", "small_table", "table_blame"});
  for (tests::Variant& each : all) each.config.serialise_after = 3;
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, SerialisedTest, testing::ValuesIn(serialising()), tests::variant_name);

TEST_P(SerialisedTest, ItCommitsAfterThatManyAborts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int alone = 0;
    serialised<Driver>([&](auto& tx) {
      ++alone;
      EXPECT_EQ(tx.read(x), 3u);
      tx.write(y, Word{1});
    });
    EXPECT_EQ(alone, 1);
    EXPECT_EQ(y, 1u);
    EXPECT_EQ(statistics().commits, 1u);
    EXPECT_EQ(statistics().aborts_total(), 3u);
    EXPECT_EQ(statistics().histogram()[3], 1u);
    EXPECT_FALSE(serial::closed());
  });
}

TEST_P(SerialisedTest, ItMayCancelThrowAndUseParts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    EXPECT_THROW(serialised<Driver>([](auto& tx) {
                   tx.write(y, Word{1});
                   Driver::cancel();
                 }),
                 Cancelled);
    EXPECT_FALSE(serial::closed());
    static int aborted;
    aborted = 0;
    EXPECT_THROW(serialised<Driver>([](auto& tx) {
                   tx.write(y, Word{1});
                   tx.on_abort([] { aborted += serial::closed() ? 10 : 1; });
                   throw std::runtime_error("alone");
                 }),
                 std::runtime_error);
    EXPECT_EQ(aborted, 1);
    EXPECT_FALSE(serial::closed());
    EXPECT_EQ(y, 0u);
    serialised<Driver>([](auto& tx) {
      tx.write(y, Word{2});
      EXPECT_FALSE(Driver::closed([](auto& part) {
        part.write(y, Word{3});
        Driver::cancel();
      }));
    });
    EXPECT_EQ(y, 2u);
    EXPECT_EQ(value_of<Driver>(y), 2u);
  });
}

TEST_P(SerialisedTest, ItOpensTheGateToWait) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<bool> ran{false};
    std::thread waiter([&] {
      Disturbance<Driver> disturbance;
      Driver::update([&](auto& tx) {
        if (!ran && !serial::closed()) return disturbance.of(tx);
        tx.read(x);
        ran = true;
        if (tx.read(z) == 0) Driver::wait_for_change();
        tx.write(y, Word{1});
      });
    });
    while (!ran.load()) platform::yield();
    Driver::update([](auto& tx) { tx.write(z, Word{1}); });  // the gate is open, or this never ends
    waiter.join();
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(SerialisedTest, AnIrrevocablePartBehindTheGateTakesNoSecondToken) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int alone = 0;
    serialised<Driver>([&](auto& tx) {
      tx.write(y, Word{1});
      Driver::closed([&](auto&) { Driver::irrevocable([&](auto&) { ++alone; }); });
    });
    EXPECT_EQ(alone, 1);
    EXPECT_EQ(y, 1u);
    EXPECT_FALSE(serial::closed());
  });
}

TEST_P(SerialisedTest, CommitHandlersRunOnceTheGateIsOpen) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int calls;
    calls = 0;
    serialised<Driver>([](auto& tx) {
      tx.on_commit([] {
        std::thread([] { Driver::update([](auto& own) { own.write(z, Word{1}); }); }).join();
        calls += serial::closed() ? 10 : 1;
      });
    });
    EXPECT_EQ(calls, 1);
  });
}

// ---- all together: nothing of it deadlocks

TEST_P(SerialTest, WaitersSerialTransactionsAndUpdatesAllEnd) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static Word* cell = nullptr;
    cell = nullptr;
    constexpr int kRounds = 150;
    std::thread producer([] {
      for (int i = 0; i < kRounds; ++i)
        Driver::update([&](auto& tx) {
          if (tx.read(cell) != nullptr) Driver::wait_for_change();
          tx.write(cell, tx.template create<Word>(Word{1}));
        });
    });
    std::thread consumer([] {
      for (int i = 0; i < kRounds; ++i)
        Driver::update([&](auto& tx) {
          Word* const taken = tx.read(cell);
          if (taken == nullptr) Driver::wait_for_change();
          tx.write(x, tx.read(x) + tx.read(*taken));
          tx.write(cell, static_cast<Word*>(nullptr));
          tx.destroy(taken);
          if (i % 5 == 0) Driver::irrevocable([](auto& own) { own.write(z, own.read(z) + 1); });
        });
    });
    std::thread alone([] {
      for (int i = 0; i < kRounds / 2; ++i) Driver::irrevocable([](auto& tx) { tx.write(y, tx.read(y) + 1); });
    });
    std::thread busy([] {
      for (int i = 0; i < kRounds * 20; ++i)
        Driver::update([](auto& tx) { tx.write(words[48], tx.read(words[48]) + 1); });
    });
    for (auto* thread : {&producer, &consumer, &alone, &busy}) thread->join();
    EXPECT_EQ(x, static_cast<Word>(kRounds));
    EXPECT_EQ(y, static_cast<Word>(kRounds / 2));
    EXPECT_EQ(z, static_cast<Word>(kRounds / 5));
    EXPECT_EQ(words[48], static_cast<Word>(kRounds * 20));
    quiesce();
    EXPECT_EQ(statistics_of_all().blocks_allocated, statistics_of_all().blocks_freed);
  });
}

}  // namespace
}  // namespace loam::tm
