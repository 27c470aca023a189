// retry(): who waits costs next to nothing and wakes soon.
#define LOAM_TEST_DIRECT 1  // who meets whom as in programs: through the table, waiters and writers met for seconds
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/unit/tm/attempts/waiters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using namespace waiters;

// What is measured is measured once per algorithm, those included that let one attempt in at a time.
struct WaitingCostTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, WaitingCostTest, testing::ValuesIn(tests::variants_for(2, {"table"})),
                         tests::variant_name);

alignas(1024) Word words[32];
Word& x = words[0];
Word& y = words[16];

#ifdef LOAM_INSTRUMENTED
constexpr double kSlack = 8;
#else
constexpr double kSlack = 2;  // for a machine that does other things as well
#endif

// What pauses of kPollNs cost by themselves, in parts of a core: on virtual machines several percent.
double share_of_pauses() {
  const std::uint64_t cpu = platform::thread_cpu_ns(), start = platform::monotonic_ns();
  for (int i = 0; i < 200; ++i) platform::sleep_ns(waiting::kPollNs);
  return static_cast<double>(platform::thread_cpu_ns() - cpu) / static_cast<double>(platform::monotonic_ns() - start);
}

TEST_P(WaitingCostTest, AWaiterUsesLittleTimeWhileOthersCommit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<std::uint64_t> waits{0};
    std::atomic<bool> stop{false};
    std::uint64_t used = 0, lasted = 0;
    std::thread waiter([&] {
      const std::uint64_t cpu = platform::thread_cpu_ns(), start = platform::monotonic_ns();
      Driver::update([&](auto& tx) {
        if (tx.read(x) != 0) return;
        ++waits;
        Driver::wait_for_change();
      });
      used = platform::thread_cpu_ns() - cpu;
      lasted = platform::monotonic_ns() - start;
    });
    std::thread other([&] {
      for (Word i = 0; !stop.load(std::memory_order_relaxed); ++i) set<Driver>(y, i);
    });
    while (waits.load() == 0) platform::yield();
    platform::sleep_ns(1'000'000'000);
    set<Driver>(x, 1);
    waiter.join();
    stop.store(true);
    other.join();
    const double share = static_cast<double>(used) / static_cast<double>(lasted);
    RecordProperty("waiter_share_of_a_core", std::to_string(share));
    std::printf("waiter: %.2f %% of a core\n", share * 100);
    // Where a begin waits for others, in vain or not, what that takes is the lock's: the pauses count, as below.
    if constexpr (Driver::Uses::kDescription.overlaps) {
      // In vain: a pause, and what the run between two pauses costs, which is not more.
      EXPECT_LE(share, 0.01 * kSlack + (runs_in_vain<Driver>() ? 2 * share_of_pauses() : 0));
    }
    // Before each wait but the first it has paused.
    EXPECT_LE(waits.load(), 1 + (runs_in_vain<Driver>() ? lasted / waiting::kPollNs : 0));
  });
}

TEST_P(WaitingCostTest, WhoRanInVainPausesFirst) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    if (runs_in_vain<Driver>()) {
      // Somebody commits behind each attempt. The first is run again at once; the others cannot know.
      constexpr unsigned kInVain = 5;
      std::deque<tests::Interpose> steps;
      for (unsigned i = 0; i <= kInVain; ++i) steps.emplace_back("tm.aborted", 0, [] { set<Driver>(y, 1); });
      const tests::Interpose pauses("tm.pausing", kInVain - 1, [] {});
      unsigned attempts = 0;
      const auto wait = [&](auto& tx) {
        if (tx.read(x) == 0 && attempts++ <= kInVain) Driver::wait_for_change();
      };
      Driver::update(wait);
      EXPECT_TRUE(steps.back().reached());
      EXPECT_TRUE(pauses.reached());
      // To wait again in the next transaction is not in vain: it does not pause.
      EXPECT_EQ(Descriptor::current().contention.woken_cpu, 0u);
    }
  });
}

// By the third that woke soonest: on a busy machine most wait for a processor, and a waiter that looks seldom is late always.
TEST_P(WaitingCostTest, AWaiterWakesWithinAMillisecond) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // With unrelated commits all the time, which is the slower case: the waiter then looks by itself.
    std::atomic<bool> stop{false};
    std::thread other([&] {
      for (Word i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        set<Driver>(y, i);
        platform::sleep_ns(100'000);
      }
    });
    std::vector<std::uint64_t> delays;
    for (Word round = 1; round <= 41; ++round) {
      std::atomic<int> attempts{0};
      std::atomic<std::uint64_t> woken{0};
      std::thread waiter([&] {
        Driver::update([&](auto& tx) {
          ++attempts;
          if (tx.read(x) < round) Driver::wait_for_change();
        });
        woken = platform::monotonic_ns();
      });
      wait_until(attempts, 1);
      let_it_sleep();
      const std::uint64_t start = platform::monotonic_ns();
      set<Driver>(x, round);
      waiter.join();
      delays.push_back(woken.load() - std::min(start, woken.load()));
    }
    stop.store(true);
    other.join();
    std::sort(delays.begin(), delays.end());
    const std::size_t third = delays.size() / 3, median = delays.size() / 2;
    std::printf("time to wake: %.0f us, median %.0f us\n", static_cast<double>(delays[third]) / 1000,
                static_cast<double>(delays[median]) / 1000);
    EXPECT_LE(delays[third], 1'000'000 * kSlack);
  });
}

}  // namespace
}  // namespace loam::tm
