// Hybrid NOrec: hardware and software transactions beside one another see each other's as whole ones.
#include "runtime/tm/hardware/hybrid.hpp"
#include "runtime/tm/hardware/availability.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/instrumented.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace loam::tm::hardware {
namespace {

class HybridTransactions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tests::kInstrumented) GTEST_SKIP() << "the sanitizer's calls abort every transaction";
    if (!available()) GTEST_SKIP() << reason_against();
    configure_once();
  }
};

struct alignas(64) Number {
  long value = 0;
};

constexpr int kThreads = 4, kTimes = 20'000;

template <class Body>
void on_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&body, i] {
      body(i);
      thread_exit();
    });
  for (auto& thread : threads) thread.join();
}

// Two numbers are equal at all times; every other transaction runs in software. Torn states, lost updates of either side.
TEST_F(HybridTransactions, NobodySeesATornState) {
  static Number left, right;
  left.value = right.value = 0;
  std::atomic<long> torn{0}, updates{0};
  std::atomic<std::uint64_t> hardware{0}, commits{0};
  on_threads([&](int thread) {
    const Statistics before = statistics();
    const auto both = [&](auto tx) {
      const long l = tx.read(left.value), r = tx.read(right.value);
      if (l != r) ++torn;
      return l - r;
    };
    const auto increment = [&](auto tx) {
      const long l = tx.read(left.value), r = tx.read(right.value);
      if (l != r) ++torn;
      tx.write(left.value, l + 1);
      tx.write(right.value, r + 1);
      return 0;
    };
    for (int n = 0; n < kTimes; ++n) {
      const bool software = (n + thread) % 2 == 0;
      if (n % 4 < 2) {
        software ? Hybrid::in_software<false>(both) : Hybrid::read_only(both);
      } else {
        software ? Hybrid::in_software<true>(increment) : Hybrid::update(increment);
        ++updates;
      }
    }
    const Statistics after = statistics();
    hardware += after.hardware - before.hardware;
    commits += after.commits - before.commits;
  });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left.value, updates);
  EXPECT_EQ(right.value, updates);
  EXPECT_GE(commits, std::uint64_t{kThreads} * kTimes);
  EXPECT_GT(hardware, commits / 8);
}

// A software reader that is in between when hardware commits: it must not combine old and new values.
TEST_F(HybridTransactions, ACommitInHardwareIsToldToWhoReadsInSoftware) {
  static Number left, right;
  left.value = right.value = 0;
  std::atomic<int> turn{0};
  std::thread writer([&] {
    while (turn.load() != 1) std::this_thread::yield();
    // Until it commits in hardware: an interrupt may abort one.
    const auto hardware_commits = [] { return statistics().hardware; };
    const auto before = hardware_commits();
    while (hardware_commits() == before)
      Hybrid::update([&](auto tx) {
        tx.write(left.value, tx.read(left.value) + 1);
        tx.write(right.value, tx.read(right.value) + 1);
        return 0;
      });
    turn = 2;
    thread_exit();
  });
  const auto body = [&](auto tx) {
    const long l = tx.read(left.value);
    if (turn.load() == 0) {
      turn = 1;
      while (turn.load() != 2) std::this_thread::yield();
    }
    return l - tx.read(right.value);
  };
  EXPECT_EQ(Hybrid::in_software<true>(body), 0);
  writer.join();
}

// Disjoint transactions in hardware do not move the sequence word while no software transaction runs.
TEST_F(HybridTransactions, WithoutSoftwareTheSequenceStaysAsItIs) {
  static Number number;
  const auto before = norec_sequence.now.load();
  const auto hardware = statistics().hardware;
  for (int i = 0; i < 1000; ++i)
    Hybrid::update([&](auto tx) {
      tx.write(number.value, tx.read(number.value) + 1);
      return 0;
    });
  const auto software = 1000 - (statistics().hardware - hardware);
  EXPECT_LE(norec_sequence.now.load() - before, 2 * software);
  EXPECT_LT(software, 500u);
}

// 64 lines of one set of the first-level cache, more than any has ways: after a few such transactions most do without hardware.
TEST_F(HybridTransactions, WhatDoesNotFitSeldomTries) {
  constexpr std::size_t kLines = 64, kApart = 4096 / sizeof(long);
  static long numbers[kLines * kApart];
  const Statistics before = statistics();
  for (int i = 0; i < 1000; ++i)
    Hybrid::update([](auto tx) {
      for (std::size_t line = 0; line < kLines; ++line)
        tx.write(numbers[line * kApart], tx.read(numbers[line * kApart]) + 1);
      return 0;
    });
  const Statistics after = statistics();
  for (std::size_t line = 0; line < kLines; ++line) EXPECT_EQ(numbers[line * kApart], 1000);
  EXPECT_EQ(after.hardware, before.hardware);
  EXPECT_LT(after.aborts_total() - before.aborts_total(), 200u);
}

struct Node {
  long value;
};

// What a hardware transaction frees is not reused while a software one may look at it.
TEST_F(HybridTransactions, ABlockFreedInHardwareWaitsForSoftwareReaders) {
  const auto before = statistics_of_all();
  static Node* shared;
  on_threads([&](int) {
    for (int n = 0; n < 2'000; ++n) {
      Hybrid::update([](auto tx) {
        Node* const old = tx.read(shared);
        tx.write(shared, tx.template create<Node>(7L));
        if (old != nullptr) tx.destroy(old);
        return 0;
      });
      const auto look = [](auto tx) {
        Node* const seen = tx.read(shared);
        return seen == nullptr ? 7 : tx.read(seen->value);
      };
      if (Hybrid::in_software<false>(look) != 7) std::abort();
    }
  });
  quiesce();
  const auto after = statistics_of_all();
  EXPECT_EQ((after.blocks_allocated - before.blocks_allocated) - (after.blocks_freed - before.blocks_freed), 1u);
}

// T6: what a hardware attempt has no means for, a cancel or a part that can be taken back, ends it; software does it then.
TEST_F(HybridTransactions, CancelsAndPartsHappenInSoftware) {
  using Software = Driver<Norec<false>>;
  static Number number;
  number.value = 5;
  const Statistics before = statistics();
  const auto cancelled = [](auto tx) {
    tx.write(number.value, 6);
    Software::cancel();
    return 0;
  };
  EXPECT_THROW(Hybrid::update(cancelled), Cancelled);
  EXPECT_EQ(number.value, 5);
  const bool kept = Hybrid::update([](auto tx) {
    tx.write(number.value, tx.read(number.value) + 1);
    return Software::closed([](auto& part) {
      part.write(number.value, 100L);
      Software::cancel();
    });
  });
  EXPECT_FALSE(kept);
  EXPECT_EQ(number.value, 6);
  EXPECT_EQ(statistics().hardware, before.hardware);
}

// A transaction in a transaction is a part of it, wherever that runs.
TEST_F(HybridTransactions, NestedOnesAreFlat) {
  static Number outer, inner;
  outer.value = inner.value = 0;
  for (int i = 0; i < 100; ++i) {
    const auto both = [](auto tx) {
      tx.write(outer.value, tx.read(outer.value) + 1);
      return Hybrid::update([](auto within) {
        within.write(inner.value, within.read(inner.value) + 1);
        return within.read(outer.value);
      });
    };
    const long seen = i % 2 == 0 ? Hybrid::update(both) : Hybrid::in_software<true>(both);
    EXPECT_EQ(seen, i + 1);
  }
  EXPECT_EQ(outer.value, 100);
  EXPECT_EQ(inner.value, 100);
}

}  // namespace
}  // namespace loam::tm::hardware
