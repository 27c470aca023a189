// Changes between the two algorithms of auto.
#include "runtime/tm/algorithms/auto.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/switching.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using Transactions = Driver<Auto<false>>;
constexpr std::uint64_t kLongNs = 10'000'000'000;

struct Failure {};

struct Counter {
  std::uint64_t value = 0;
};

void add(Counter& counter) {
  Transactions::update([&](auto& tx) { tx.write(counter.value, tx.read(counter.value) + 1); });
}
std::uint64_t value(Counter& counter) {
  return Transactions::read_only([&](auto& tx) { return tx.read(counter.value); });
}

class SwitchingTest : public testing::Test {
 protected:
  void SetUp() override { add(first_); }
  void TearDown() override { EXPECT_TRUE(switching::change_to(false, kLongNs)); }
  Counter first_;
};

TEST_F(SwitchingTest, WhatOneAlgorithmWroteTheOtherReads) {
  Counter counter;
  const std::uint64_t switches = switching::report().switches;
  for (unsigned round = 1; round <= 20; ++round) {
    for (unsigned i = 0; i < 10; ++i) add(counter);
    ASSERT_TRUE(switching::change_to(round % 2 == 1, kLongNs));
    EXPECT_EQ(value(counter), round * 10);
  }
  EXPECT_EQ(switching::report().switches, switches + 20);
}

TEST_F(SwitchingTest, AChangeToWhatRunsIsNone) {
  const std::uint64_t switches = switching::report().switches;
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  EXPECT_EQ(switching::report().switches, switches + 1);
}

TEST_F(SwitchingTest, CommitsAreCountedUnderWhatTheyRan) {
  Counter counter;
  const switching::Report before = switching::report();
  for (unsigned i = 0; i < 3; ++i) add(counter);
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  for (unsigned i = 0; i < 5; ++i) add(counter);
  ASSERT_TRUE(switching::change_to(false, kLongNs));
  const switching::Report after = switching::report();
  EXPECT_EQ(after.commits_of_few - before.commits_of_few, 3u);
  EXPECT_EQ(after.commits_of_many - before.commits_of_many, 5u);
}

TEST_F(SwitchingTest, ExceptionsPartsAndRestartsUndoUnderBoth) {
  for (const bool scales : {false, true}) {
    ASSERT_TRUE(switching::change_to(scales, kLongNs));
    Counter counter;
    EXPECT_THROW(Transactions::update([&](auto& tx) {
                   tx.write(counter.value, 1u);
                   throw Failure{};
                 }),
                 Failure);
    EXPECT_EQ(counter.value, 0u);
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, 2u);
      const bool kept = Transactions::closed([&](auto& part) {
        part.write(counter.value, 3u);
        Transactions::cancel();
      });
      EXPECT_FALSE(kept);
    });
    EXPECT_EQ(value(counter), 2u);
    unsigned runs = 0;
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, 4u);
      if (++runs == 1) Transactions::begin_again();
    });
    EXPECT_EQ(runs, 2u);
    EXPECT_EQ(value(counter), 4u);
    EXPECT_THROW(Transactions::update([&](auto& tx) {
                   tx.write(counter.value, 5u);
                   Transactions::cancel();
                 }),
                 Cancelled);
    Transactions::irrevocable([&](auto& tx) { tx.write(counter.value, tx.read(counter.value) + 2); });
    EXPECT_EQ(value(counter), 6u);
  }
}

TEST_F(SwitchingTest, AChangeGivesUpWhereAnAttemptGoesOn) {
  Counter counter;
  std::atomic<bool> inside{false}, leave{false};
  std::thread other([&] {
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, 1u);
      inside = true;
      while (!leave) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  EXPECT_FALSE(switching::change_to(true, 1'000'000));
  EXPECT_FALSE(switching::scales());
  leave = true;
  other.join();
  EXPECT_EQ(value(counter), 1u);
  EXPECT_TRUE(switching::change_to(true, kLongNs));
}

TEST_F(SwitchingTest, ASleeperIsWokenByAChangeAndSeesTheOthersCommit) {
  for (const bool scales : {true, false}) {
    Counter counter;
    std::atomic<unsigned> runs{0};
    std::thread sleeper([&] {
      Transactions::update([&](auto& tx) {
        ++runs;
        if (tx.read(counter.value) == 0) Transactions::wait_for_change();
      });
    });
    while (runs == 0) std::this_thread::yield();
    ASSERT_TRUE(switching::change_to(scales, kLongNs));
    add(counter);
    sleeper.join();
    EXPECT_GE(runs, 2u);
  }
}

TEST_F(SwitchingTest, NoUpdateIsLostWhileThreadsRunAndTheAlgorithmChanges) {
  constexpr unsigned kThreads = 4, kAdds = 3000;
  std::array<Counter, 2> counters;
  std::atomic<unsigned> running{kThreads};
  std::atomic<unsigned> torn{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kAdds; ++i) {
        if (i % 64 == 63 && t == 0) {
          Transactions::irrevocable([&](auto& tx) {
            for (Counter& each : counters) tx.write(each.value, tx.read(each.value) + 1);
          });
          continue;
        }
        Transactions::update([&](auto& tx) {
          for (Counter& each : counters) tx.write(each.value, tx.read(each.value) + 1);
        });
        const bool same =
            Transactions::read_only([&](auto& tx) { return tx.read(counters[0].value) == tx.read(counters[1].value); });
        torn += !same;
      }
      --running;
    });
  unsigned done = 0;
  for (bool scales = true; running != 0; scales = !scales) {
    done += switching::change_to(scales, kLongNs);
    done += switching::change_to(!scales, kLongNs);  // two in a row
    done += switching::change_to(scales, kLongNs);
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(value(counters[0]), std::uint64_t{kThreads} * kAdds);
  EXPECT_EQ(value(counters[1]), std::uint64_t{kThreads} * kAdds);
  EXPECT_GE(done, 1u);
}

// ---- the judgement

constexpr std::uint64_t kWindow = switching::kWindowNs;

// `rate` commits a microsecond.
switching::Window window(double rate, double validations_per_commit) {
  const auto commits = static_cast<std::uint64_t>(rate * kWindow / 1000);
  return {.commits = commits,
          .validations = static_cast<std::uint64_t>(static_cast<double>(commits) * validations_per_commit),
          .ns = kWindow};
}

TEST(Judge, StaysWithFewWhereNobodyMeets) {
  switching::Judge judge;
  for (std::uint64_t now = kWindow; now < 100 * kWindow; now += kWindow)
    EXPECT_FALSE(judge.next(window(12, 0.1), now));
}

// Under a constant load: what each algorithm has, in windows; returns how often it changed, and what it ended with.
struct Ran {
  unsigned changes;
  bool scales;
};
Ran run(switching::Judge& judge, bool scales, std::uint64_t& now, unsigned windows, double few, double many,
        double validations) {
  unsigned changes = 0;
  for (unsigned i = 0; i < windows; ++i) {
    const bool next = judge.next(scales ? window(many, 0) : window(few, validations), now += kWindow);
    changes += next != scales;
    scales = next;
  }
  return {changes, scales};
}

TEST(Judge, ChangesOnceWhereTheScalableOneIsFasterAndBackWithTheLoad) {
  switching::Judge judge;
  std::uint64_t now = 2 * switching::kRestNsLeast;
  Ran ran = run(judge, false, now, 2000, 5.6, 54, 8);
  EXPECT_EQ(ran.changes, 1u);
  EXPECT_TRUE(ran.scales);
  ran = run(judge, true, now, 20, 12, 8.8, 0);  // within 1 ms
  EXPECT_EQ(ran.changes, 1u);
  EXPECT_FALSE(ran.scales);
}

TEST(Judge, TriesRarelyWhereTheTrialFails) {
  switching::Judge judge;
  std::uint64_t now = 2 * switching::kRestNsLeast;
  // A second.
  const Ran ran = run(judge, false, now, 1'000'000'000 / kWindow, 41, 24, 2);
  EXPECT_FALSE(ran.scales);
  EXPECT_LE(ran.changes, 2u * 12);
}

TEST(Judge, RestsAfterARefusal) {
  switching::Judge judge;
  std::uint64_t now = 2 * switching::kRestNsLeast;
  ASSERT_TRUE(judge.next(window(5, 8), now));
  judge.refused(now);
  EXPECT_FALSE(judge.next(window(5, 8), now += kWindow));
  EXPECT_TRUE(judge.next(window(5, 8), now += 4 * switching::kRestNsLeast));
}

}  // namespace
}  // namespace loam::tm
