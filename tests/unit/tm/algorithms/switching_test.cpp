// Changes between the two algorithms of auto.
#include "runtime/tm/attempts/switching.hpp"
#include "runtime/tm/algorithms/auto.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/attempts/serial.hpp"
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
    Descriptor::current().reads_now = true;  // as after an attempt that failed: no settled snapshot bounds this one
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
        wait_until(
            [&] { return std::atomic_ref(two.value).load() == 101 && std::atomic_ref(one.value).load() == 101; });
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

}  // namespace
}  // namespace loam::tm
