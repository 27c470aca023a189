// Changes between the two algorithms of auto.
#include "runtime/tm/algorithms/auto.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/attempts/switching.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace loam::tm {
namespace {

using Transactions = Driver<Auto<false>>;
using tests::Interpose;
constexpr std::uint64_t kLongNs = 10'000'000'000;

struct Failure {};

template <class Condition>
void wait_until(const Condition& condition) {
  while (!condition()) std::this_thread::yield();
}

// A word with an ownership record of its own.
struct alignas(64) Counter {
  std::uint64_t value = 0;
};

void add(Counter& counter) {
  Transactions::update([&](auto& tx) { tx.write(counter.value, tx.read(counter.value) + 1); });
}
std::uint64_t value_of(Counter& counter) {
  return Transactions::read_only([&](auto& tx) { return tx.read(counter.value); });
}
std::uint64_t switches() { return statistics_of_all().switches; }

// Each test begins and ends with few. Nothing is judged: tests say what changes.
class SwitchingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { switching::fix(switching::Runs::few); }
  void SetUp() override { add(first_); }
  void TearDown() override { EXPECT_TRUE(switching::change_to(false, kLongNs)); }
  Counter first_;
};

TEST_F(SwitchingTest, WhatOneAlgorithmWroteTheOtherReads) {
  Counter counter;
  const std::uint64_t before = switches();
  for (unsigned round = 1; round <= 20; ++round) {
    for (unsigned i = 0; i < 10; ++i) add(counter);
    ASSERT_TRUE(switching::change_to(round % 2 == 1, kLongNs));
    EXPECT_EQ(value_of(counter), round * 10);
  }
  EXPECT_EQ(switches(), before + 20);
}

TEST_F(SwitchingTest, AChangeToWhatRunsIsNone) {
  const std::uint64_t before = switches();
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  EXPECT_EQ(switches(), before + 1);
}

TEST_F(SwitchingTest, CommitsAreCountedUnderWhatTheyRan) {
  Counter counter;
  const Statistics before = statistics();
  for (unsigned i = 0; i < 3; ++i) add(counter);
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  for (unsigned i = 0; i < 5; ++i) add(counter);
  ASSERT_TRUE(switching::change_to(false, kLongNs));
  add(counter);
  EXPECT_EQ(statistics().scalable - before.scalable, 5u);
  EXPECT_EQ(statistics().commits - before.commits, 9u);
}

// Under norec nothing waits. Under the other one attempts are awaited, unless nobody asks for that.
TEST_F(SwitchingTest, AttemptsAreAwaitedUnderTheScalableOneAlone) {
  for (const bool scales : {true, false, true}) {
    ASSERT_TRUE(switching::change_to(scales, kLongNs));
    bool inside = false, awaited = false;
    Transactions::update([&](auto&) {
      const Descriptor& d = Descriptor::current_or_detached();
      inside = grace::is_inside(d);
      awaited = d.awaited;
    });
    EXPECT_EQ(inside, scales);
    EXPECT_EQ(awaited, scales);
    EXPECT_FALSE(grace::is_inside(Descriptor::current()));
  }
}

TEST_F(SwitchingTest, ExceptionsPartsAndRestartsUndoUnderBoth) {
  for (const bool scales : {false, true}) {
    ASSERT_TRUE(switching::change_to(scales, kLongNs));
    Counter counter;
    EXPECT_THROW(Transactions::update([&](auto& tx) {
                   tx.write(counter.value, std::uint64_t{1});
                   throw Failure{};
                 }),
                 Failure);
    EXPECT_EQ(counter.value, 0u);
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, std::uint64_t{2});
      const bool kept = Transactions::closed([&](auto& part) {
        part.write(counter.value, std::uint64_t{3});
        Transactions::cancel();
      });
      EXPECT_FALSE(kept);
    });
    EXPECT_EQ(value_of(counter), 2u);
    unsigned runs = 0;
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, std::uint64_t{4});
      if (++runs == 1) Transactions::begin_again();
    });
    EXPECT_EQ(runs, 2u);
    EXPECT_EQ(value_of(counter), 4u);
    EXPECT_THROW(Transactions::update([&](auto& tx) {
                   tx.write(counter.value, std::uint64_t{5});
                   Transactions::cancel();
                 }),
                 Cancelled);
    Transactions::irrevocable([&](auto& tx) { tx.write(counter.value, tx.read(counter.value) + 2); });
    EXPECT_EQ(value_of(counter), 6u);
  }
}

// Of two words that change together an attempt sees the same, after a change too: its snapshot is no sequence number, which
// may be ahead of the clock (A3).
TEST_F(SwitchingTest, AfterAChangeTheSnapshotIsOfTheClock) {
  for (const bool reads_only : {true, false}) {
    Counter one, two;
    ASSERT_TRUE(switching::change_to(false, kLongNs));
    for (unsigned i = 0; i < 100; ++i) add(one), add(two);
    ASSERT_TRUE(switching::change_to(true, kLongNs));
    ASSERT_LT(version_clock.now.load() + 2, norec_sequence.now.load());
    bool is_torn = false;
    std::thread other;  // its commit waits for this attempt
    const auto body = [&](auto& tx) {
      const std::uint64_t seen = tx.read(one.value);
      if (!other.joinable()) {
        other = std::thread([&] {
          Transactions::update([&](auto& own) {
            for (Counter* each : {&one, &two}) own.write(each->value, own.read(each->value) + 1);
          });
        });
        wait_until([&] { return std::atomic_ref(two.value).load() == 101 && std::atomic_ref(one.value).load() == 101; });
      }
      is_torn |= tx.read(two.value) != seen;
    };
    if (reads_only)
      Transactions::read_only(body);
    else
      Transactions::update(body);
    other.join();
    EXPECT_FALSE(is_torn) << (reads_only ? "read-only" : "update");
  }
}

TEST_F(SwitchingTest, AChangeGivesUpWhereAnAttemptGoesOn) {
  Counter counter;
  std::atomic<bool> inside{false}, leave{false};
  std::thread other([&] {
    Transactions::update([&](auto& tx) {
      tx.write(counter.value, std::uint64_t{1});
      inside = true;
      wait_until([&] { return leave.load(); });
    });
  });
  wait_until([&] { return inside.load(); });
  EXPECT_FALSE(switching::change_to(true, 1'000'000));
  EXPECT_FALSE(switching::scales());
  EXPECT_FALSE(serial::closed());
  leave = true;
  other.join();
  EXPECT_EQ(value_of(counter), 1u);
  EXPECT_TRUE(switching::change_to(true, kLongNs));
}

// A commit that waits for others has left its attempt: a change need not wait for it, nor does it for the change (A5).
TEST_F(SwitchingTest, TheAlgorithmChangesWhileACommitWaits) {
  LOAM_NEEDS_POINTS();
  Counter counter;
  ASSERT_TRUE(switching::change_to(true, kLongNs));
  bool changed = false;
  const Interpose waits("tm.privatizing", 0, [&] {
    changed = switching::change_to(false, kLongNs);
    add(counter);
  });
  add(counter);
  ASSERT_TRUE(waits.reached());
  EXPECT_TRUE(changed);
  EXPECT_EQ(value_of(counter), 2u);
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
    wait_until([&] { return runs != 0 && shared.sleepers != 0; });
    ASSERT_TRUE(switching::change_to(scales, kLongNs));
    wait_until([&] { return runs >= 2; });  // by the change alone
    add(counter);
    sleeper.join();
  }
}

TEST_F(SwitchingTest, NoUpdateIsLostWhileThreadsRunAndTheAlgorithmChanges) {
  constexpr unsigned kThreads = 4, kAdds = 2000;
  std::array<Counter, 2> counters;
  std::atomic<unsigned> running{kThreads};
  std::atomic<unsigned> torn{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto add_to_both = [&](auto& tx) {
        for (Counter& each : counters) tx.write(each.value, tx.read(each.value) + 1);
      };
      for (unsigned i = 0; i < kAdds; ++i) {
        if (i % 64 == 63 && t == 0)
          Transactions::irrevocable(add_to_both);
        else
          Transactions::update(add_to_both);
        torn += !Transactions::read_only(
            [&](auto& tx) { return tx.read(counters[0].value) == tx.read(counters[1].value); });
      }
      --running;
    });
  unsigned done = 0;
  for (bool scales = true; running != 0; scales = !scales) done += switching::change_to(scales, kLongNs);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(value_of(counters[0]), std::uint64_t{kThreads} * kAdds);
  EXPECT_EQ(value_of(counters[1]), std::uint64_t{kThreads} * kAdds);
  EXPECT_GE(done, 1u);
}

// What a transaction has unlinked its thread frees and fills plainly, while the algorithm changes.
TEST_F(SwitchingTest, BuffersGoRoundWhileTheAlgorithmChanges) {
  constexpr unsigned kThreads = 3, kRounds = 2000;
  struct alignas(64) Buffer {
    std::uint64_t plain = 0, other = 0;
  };
  std::array<Buffer, 2> buffers;
  struct alignas(64) Slot {
    Buffer* buffer;
  };
  std::array<Slot, 2> slots{Slot{&buffers[0]}, Slot{&buffers[1]}};
  std::atomic<unsigned> running{kThreads};
  std::atomic<std::uint64_t> changes{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kRounds; ++i) {
        Buffer*& slot = slots[(i + t) % 2].buffer;
        if (i % 3 == 0) {
          changes += Transactions::update([&](auto& tx) -> std::uint64_t {
            Buffer* const linked = tx.read(slot);
            if (linked == nullptr) return 0;
            tx.write(linked->plain, tx.read(linked->plain) + 1);
            tx.write(linked->other, tx.read(linked->other) + 1);
            return 1;
          });
          continue;
        }
        Buffer* const own = Transactions::update([&](auto& tx) {
          Buffer* const linked = tx.read(slot);
          if (linked != nullptr) tx.write(slot, static_cast<Buffer*>(nullptr));
          return linked;
        });
        if (own == nullptr) continue;
        own->plain = own->plain + 1;
        own->other = own->other + 1;
        ++changes;
        Transactions::update([&](auto& tx) { tx.write(slot, own); });
      }
      --running;
    });
  for (bool scales = true; running != 0; scales = !scales) switching::change_to(scales, kLongNs);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(buffers[0].plain + buffers[1].plain, changes.load());
  EXPECT_EQ(buffers[0].other + buffers[1].other, changes.load());
}

// ---- the judgement

constexpr std::uint64_t kWindow = switching::kWindowNs;

// `rate` commits a microsecond.
switching::Window window(bool scales, double rate, double validations_per_commit) {
  const auto commits = static_cast<std::uint64_t>(rate * kWindow / 1000);
  return {.scales = scales,
          .commits = commits,
          .validations = static_cast<std::uint64_t>(static_cast<double>(commits) * validations_per_commit),
          .ns = kWindow};
}

// A load that goes on: the rates that the two algorithms have under it, and validations a commit under that for few.
struct Load {
  double few, many, validations;
};
constexpr Load kCrowd{5.6, 54, 8}, kSingle{12, 8.8, 0}, kSome{41, 24, 2};

struct Course {
  switching::Judge judge;
  bool scales = false;
  std::uint64_t now_ns = 1'000'000'000;
  unsigned changes = 0;
  std::uint64_t scaled_ns = 0;

  void run(const Load& load, std::uint64_t ns) {
    for (const std::uint64_t end = now_ns + ns; now_ns < end;) {
      scaled_ns += scales ? kWindow : 0;
      const bool next = judge.next(scales ? window(true, load.many, 0) : window(false, load.few, load.validations),
                                   now_ns += kWindow);
      changes += next != scales;
      scales = next;
    }
  }
};
constexpr std::uint64_t kMs = 1'000'000;

TEST(Judge, StaysWithFewWhereNobodyMeets) {
  Course course;
  course.run({12, 100, 0.1}, 100 * kMs);
  EXPECT_EQ(course.changes, 0u);
}

TEST(Judge, PassesOverTheWindowOfAChange) {
  switching::Judge judge;
  std::uint64_t now = 1000 * kMs;
  ASSERT_TRUE(judge.next(window(false, 5.6, 8), now += kWindow));
  EXPECT_TRUE(judge.next(window(true, 0.1, 0), now += kWindow));
  EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
  // Back again: the trial that follows fails, and its end is such a window too.
  EXPECT_FALSE(judge.next(window(true, 54, 0), now += 1000 * kMs));
  EXPECT_FALSE(judge.next(window(false, 100, 8), now += kWindow));
  EXPECT_TRUE(judge.next(window(false, 5.6, 8), now += kWindow));
}

// Records come into caches: the rate of a trial's first windows is not yet that of the algorithm.
TEST(Judge, GoesOnWithATrialWhileTheRateRises) {
  for (const unsigned windows : {3u, switching::kTrialWindows + 2}) {
    switching::Judge judge;
    std::uint64_t now = 1000 * kMs;
    ASSERT_TRUE(judge.next(window(false, 30, 8), now += kWindow));
    double rate = 5;
    EXPECT_TRUE(judge.next(window(true, rate, 0), now += kWindow));
    bool stays = true;
    for (unsigned i = 0; i < windows && stays; ++i) stays = judge.next(window(true, rate *= 1.3, 0), now += kWindow);
    if (windows == 3) {
      EXPECT_TRUE(stays);
      EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
      EXPECT_TRUE(judge.next(window(true, 54, 0), now += kWindow));
    } else {
      EXPECT_FALSE(stays);
    }
  }
}

TEST(Judge, SettlesWithinAMillisecond) {
  Course course;
  course.run(kSingle, 20 * kMs);
  course.run(kCrowd, kMs);
  EXPECT_TRUE(course.scales);
  EXPECT_EQ(course.changes, 1u);
  course.run(kCrowd, 20 * kMs);
  course.run(kSingle, kMs);
  EXPECT_FALSE(course.scales);
  course.run(kSingle, 20 * kMs);
  course.run(kCrowd, kMs);
  EXPECT_TRUE(course.scales);
}

TEST(Judge, TriesRarelyUnderAConstantLoad) {
  for (const Load& load : {kCrowd, kSome}) {
    Course course;
    course.run(load, 100 * kMs);
    const std::uint64_t scaled_before = course.scaled_ns;
    const unsigned before = course.changes;
    course.run(load, 1000 * kMs);
    EXPECT_EQ(course.scales, load.many > load.few);
    EXPECT_LE(course.changes - before, 2u * 16) << load.few;
    const double share = static_cast<double>(course.scaled_ns - scaled_before) / (1000.0 * kMs);
    EXPECT_NEAR(share, load.many > load.few ? 1 : 0, 0.01) << load.few;
  }
}

// Of two that are about as fast, the one stays that runs.
TEST(Judge, KeepsWhatRunsWhereBothAreAlike) {
  Course course;
  course.run(kCrowd, 10 * kMs);
  ASSERT_TRUE(course.scales);
  course.run({22, 20.5, 2}, 1000 * kMs);
  EXPECT_TRUE(course.scales);
  Course other;
  other.run({20.5, 22, 2}, 1000 * kMs);
  EXPECT_FALSE(other.scales);
}

// A load that never settles costs a few trials in kResetsApartNs.
TEST(Judge, DoesNotTryAllTheTimeWhereTheLoadNeverSettles) {
  Course course;
  for (unsigned i = 0; i < 500; ++i) {
    course.run({40, 20, 2}, 3 * kWindow);
    course.run({10, 5, 2}, 3 * kWindow);
  }
  const double ms = 500 * 6 * kWindow / static_cast<double>(kMs);
  EXPECT_LE(course.changes, 8 * ms / (switching::kResetsApartNs / static_cast<double>(kMs)));
}

}  // namespace
}  // namespace loam::tm
