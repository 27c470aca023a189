// The search for shift and size of the table, and changes of the table while transactions run.
#include "runtime/tm/records/tuning.hpp"

#include "runtime/platform/machine.hpp"
#define LOAM_TEST_HASH
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace loam::tm {
namespace {

using tuning::kCandidates, tuning::kChangesMax, tuning::kRestNs, tuning::kWindowNs, tuning::Pair;

constexpr Pair kFirst{5, 20};

// A program whose rate follows from the pair in use, looked at window by window.
struct Program {
  tuning::Search search{kFirst};
  Pair pair = kFirst;
  unsigned changes = 0;
  std::uint64_t now_ns = 0;

  void run(unsigned windows, const std::function<double(Pair)>& rate) {
    for (unsigned i = 0; i < windows; ++i) {
      now_ns += kWindowNs;
      const Pair next = search.next(rate(pair), now_ns);
      changes += next != pair;
      pair = next;
    }
  }
};
constexpr unsigned kSecond = 1'000'000'000 / kWindowNs, kMinute = 60 * kSecond;

TEST(SearchTest, EachPairCanWinWithinASecond) {
  std::vector<Pair> all(kCandidates.begin(), kCandidates.end());
  all.push_back(kFirst);
  for (const Pair& best : all) {
    Program program;
    program.run(kSecond, [&](Pair pair) { return pair == best ? 1e6 : 0.8e6; });
    EXPECT_EQ(program.pair, best) << best.shift << ", " << best.records_log2;
    EXPECT_LE(program.changes, kChangesMax);
    program.run(10 * kMinute, [&](Pair pair) { return pair == best ? 1e6 : 0.8e6; });
    EXPECT_EQ(program.pair, best);
    EXPECT_LE(program.changes, kChangesMax) << "the rate is what it was: nothing to look for";
  }
}

TEST(SearchTest, OneDisturbedWindowDecidesNothing) {
  for (unsigned disturbed = 2; disturbed < kSecond; ++disturbed) {
    Program program;
    for (unsigned window = 0; window < kSecond; ++window)
      program.run(1,
                  [&](Pair pair) { return (pair == kCandidates[0] ? 1.2e6 : 1e6) * (window == disturbed ? 0.5 : 1); });
    EXPECT_EQ(program.pair, kCandidates[0]) << "window " << disturbed;
  }
}

TEST(SearchTest, ATieKeepsWhatWasAskedFor) {
  Program program;
  program.run(kSecond, [](Pair pair) { return pair == kFirst ? 1e6 : 1.02e6; });
  EXPECT_EQ(program.pair, kFirst);
}

TEST(SearchTest, NothingIsTriedWhileTheRateIsSmallOrUnsteady) {
  Program idle, unsteady;
  idle.run(kMinute, [](Pair) { return 10.0; });
  EXPECT_EQ(idle.changes, 0u);
  double rate = 1e5;
  unsteady.run(40, [&](Pair) { return rate *= 1.3; });
  EXPECT_EQ(unsteady.changes, 0u);
}

TEST(SearchTest, AnotherPhaseIsSearchedAnewAfterAMinuteAndNoSooner) {
  Program program;
  const auto first_phase = [](Pair pair) { return pair == kCandidates[0] ? 2e6 : 1e6; };
  const auto second_phase = [](Pair pair) { return pair == kCandidates[1] ? 9e6 : 8e6; };
  program.run(kSecond, first_phase);
  ASSERT_EQ(program.pair, kCandidates[0]);
  const unsigned changes = program.changes;
  program.run(kMinute - 2 * kSecond, second_phase);
  EXPECT_EQ(program.changes, changes);
  program.run(3 * kSecond, second_phase);
  EXPECT_EQ(program.pair, kCandidates[1]);
}

TEST(SearchTest, ThereAreNeverMoreThanSoManyChangesAMinute) {
  Program program;
  std::vector<unsigned> at;
  // The rate jumps every three seconds.
  for (unsigned window = 0; window < 10 * kMinute; ++window) {
    program.run(1, [&](Pair pair) { return (window / 30 % 2 == 0 ? 1e6 : 4e6) + pair.shift * 1e5; });
    at.push_back(program.changes);
    if (window >= kMinute) {
      EXPECT_LE(at[window] - at[window - kMinute], kChangesMax) << window;
    }
  }
  EXPECT_GT(program.changes, kChangesMax) << "it goes on looking";
}

// ---- changes while transactions run

struct TuningTest : testing::TestWithParam<tests::Variant> {};
std::vector<tests::Variant> adaptive_variants() {
  auto all = tests::variants({"table"});
  for (const tests::Variant& each : tests::variants({"small_hash"})) all.push_back(each);
  std::erase_if(all, [](const tests::Variant& variant) {
    bool records = false;
    tests::Tested::with<false>(variant.algorithm, [&]<class A>() { records = uses_records<A>(); });
    return !records;
  });
  for (tests::Variant& each : all) each.config.adaptive = true;
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, TuningTest, testing::ValuesIn(adaptive_variants()), tests::variant_name);

alignas(4096) Word words[512];

Pair pair_of(unsigned i) {
  constexpr Pair kPairs[] = {kFirst, kCandidates[0], {12, 10}, kCandidates[1], {3, 10}};
  return kPairs[i % std::size(kPairs)];
}

TEST_P(TuningTest, TransactionsStayAtomicWhileTheTableChanges) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> committed{0}, torn{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        base::Random random(7, t);
        std::uint64_t mine = 0;
        while (!stop.load(std::memory_order_relaxed)) {
          const unsigned a = random.below(64) * 8, b = random.below(64) * 8;
          Driver::update([&](auto& tx) {
            // Each pair of words is equal in every attempt, doomed ones included.
            if (tx.read(words[a]) != tx.read(words[a + 1])) ++torn;
            if (tx.read(words[b]) != tx.read(words[b + 1])) ++torn;
            for (unsigned w : {a, a + 1}) tx.write(words[w], tx.read(words[w]) + 1);
          });
          ++mine;
        }
        committed += mine;
      });
    for (unsigned i = 0; i < 200; ++i) {
      tuning::change_to(pair_of(i));
      platform::sleep_ns(200'000);
    }
    stop.store(true);
    for (auto& thread : threads) thread.join();
    std::uint64_t sum = 0;
    for (unsigned w = 0; w < 512; w += 8) {
      EXPECT_EQ(words[w], words[w + 1]);
      sum += words[w];
    }
    EXPECT_EQ(sum, committed.load());
    EXPECT_EQ(torn.load(), 0u);
    EXPECT_GE(tuning::changes(), 200u);
  });
}

TEST_P(TuningTest, WhoWaitsIsWokenThroughTheNewTable) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      Driver::update([&](auto& tx) {
        // Counted once it has read: an attempt that stands still before that may see the change, and need no other.
        const bool is_zero = tx.read(words[0]) == 0;
        ++attempts;
        if (is_zero) Driver::wait_for_change();
      });
    });
    const auto wait_for = [&](int count) {
      while (attempts.load() < count) platform::yield();
      platform::sleep_ns(3'000'000);  // it has gone to sleep, mostly
    };
    wait_for(1);
    tuning::change_to({7, 12});
    wait_for(2);  // its records meant other words
    Driver::update([](auto& tx) { tx.write(words[0], Word{1}); });
    waiter.join();
    EXPECT_GE(attempts.load(), 3);
  });
}

TEST_P(TuningTest, AChildOfForkKeepsItsPair) {
  tests::in_variant(GetParam(), []<class Driver>() {
    const auto increment = [] { Driver::update([](auto& tx) { tx.write(words[0], tx.read(words[0]) + 1); }); };
    increment();
    tuning::change_to({6, 11});
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      increment();
      _exit(words[0] == 2 && tuning::pair() == Pair{6, 11} ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
}

TEST(TuningThreadTest, ItTriesWhatThereIsAndRests) {
  tests::in_child([] {
    configure({.adaptive = true});
    const std::uint64_t end = platform::monotonic_ns() + 1'500'000'000;
    while (platform::monotonic_ns() < end)
      Driver<EtlWb<false>>::update([](auto& tx) { tx.write(words[0], tx.read(words[0]) + 1); });
    // Nothing is to be gained here; a loaded machine may not have been steady for long enough.
    EXPECT_LE(tuning::changes(), kChangesMax);
    if (tuning::changes() == 0) GTEST_SKIP() << "the machine was never steady for two windows";
    EXPECT_GE(tuning::changes(), 1u);
  });
}

TEST(TuningThreadTest, AFixedTableHasNoThreadAndNoRoom) {
  tests::in_child([] {
    configure({.records_log2 = 12});
    Driver<EtlWb<false>>::update([](auto& tx) { tx.write(words[0], Word{1}); });
    EXPECT_EQ(shared.map.capacity(), 1u << 12);
    EXPECT_DEATH(tuning::change_to({5, 13}), "no room for 2.13 ownership records");
  });
}

}  // namespace
}  // namespace loam::tm
