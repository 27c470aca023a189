// The deferred clock: who moves it, and who must.
#include "runtime/tm/algorithms/dctl.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <unistd.h>

namespace loam::tm {
namespace {

using Txs = Driver<Dctl<false>>;

alignas(1024) Word words[64];  // every second one lies on a record of its own

std::uint64_t clock_now() { return version_clock.now.load(); }
std::uint64_t version_of(const Word& word) { return shared.map.record(&word).load(); }

template <class Body>
void with(const Config& config, Body&& body) {
  tests::in_child([&] {
    configure(config);
    body();
  });
}
// Commits that wait for older attempts move the clock: they have tests of their own below.
constexpr Config kShadow{.mapping = Mapping::shadow, .privatization = Privatization::none};

TEST(DeferredClockTest, CommitsToDifferentWordsShareAVersionAndLeaveTheClock) {
  with(kShadow, [] {
    const std::uint64_t before = clock_now();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (unsigned i = t; i < 32; i += 4)
          Txs::update([&](auto& tx) { tx.write(words[2 * i], tx.read(words[2 * i]) + 1); });
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(clock_now(), before);
    for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(version_of(words[2 * i]), before + 1);
    EXPECT_EQ(statistics_of_all().aborts_total(), 0u);
  });
}

TEST(DeferredClockTest, WhoMeetsAFutureVersionRaisesTheClockOnce) {
  with(kShadow, [] {
    alarm(10);  // whoever does not raise it meets the version for ever
    for (const bool logged : {false, true}) {
      Txs::update([](auto& tx) {
        for (Word& word : words) tx.write(word, tx.read(word) + 1);
      });
      const std::uint64_t before = clock_now();
      int attempts = 0;
      Word sum = 0;
      const auto body = [&](auto& tx) {
        ++attempts;
        sum = 0;
        for (const Word& word : words) sum += tx.read(word);
      };
      std::thread([&] { logged ? Txs::update(body) : Txs::read_only(body); }).join();
      EXPECT_EQ(sum, logged ? 128u : 64u);
      EXPECT_EQ(clock_now(), before + 1);
      EXPECT_EQ(attempts, logged ? 1 : 2) << "with a log it extends, without one it aborts once";
    }
  });
}

TEST(DeferredClockTest, AWordsVersionsGrowStrictly) {
  with(kShadow, [] {
    touch_records();  // before the first transaction maps them
    std::uint64_t last = version_of(words[0]);
    for (int i = 0; i < 100; ++i) {
      if (i % 2 == 0)
        Txs::update([](auto& tx) { tx.write(words[0], Word{1}); });
      else
        std::thread([] { Txs::update([](auto& tx) { tx.write(words[0], Word{2}); }); }).join();
      EXPECT_GT(version_of(words[0]), last);
      last = version_of(words[0]);
    }
  });
}

TEST(DeferredClockTest, ACommitThatWaitsForOlderAttemptsDoesNotWaitForNewOnes) {
  LOAM_NEEDS_POINTS();
  with({.mapping = Mapping::shadow, .privatization = Privatization::commit}, [] {
    // An attempt that begins while the commit is about to wait, and stays inside until that has returned.
    std::atomic<std::uint32_t> inside{0}, returned{0};
    std::atomic<bool> in_time{true};
    std::thread younger;
    tests::Interpose step("tm.privatizing", 0, [&] {
      younger = std::thread([&] {
        Txs::update([&](auto& tx) {
          EXPECT_EQ(tx.read(words[0]), 7u);
          inside.store(1);
          const std::uint64_t deadline = platform::monotonic_ns() + 2'000'000'000;
          while (returned.load() == 0 && platform::monotonic_ns() < deadline) platform::yield();
          if (returned.load() == 0) in_time = false;
        });
      });
      while (inside.load() == 0) platform::yield();
    });
    Txs::update([](auto& tx) { tx.write(words[0], Word{7}); });
    returned.store(1);
    younger.join();
    EXPECT_TRUE(step.reached());
    EXPECT_TRUE(in_time.load()) << "the commit waited for an attempt that had begun after it";
  });
}

TEST(DeferredClockTest, ACommitThatWaitsForOlderAttemptsWaitsForThoseOfItsOwnVersion) {
  LOAM_NEEDS_POINTS();
  with({.mapping = Mapping::shadow, .privatization = Privatization::commit}, [] {
    // It began when the clock stood where it stands at the commit, and has seen the word as it was before.
    std::atomic<std::uint32_t> inside{0}, waiting{0};
    std::atomic<bool> left{false};
    std::thread older([&] {
      Txs::update([&](auto& tx) {
        EXPECT_EQ(tx.read(words[0]), 0u);
        inside.store(1);
        while (waiting.load() == 0) platform::yield();
        platform::sleep_ns(50'000'000);
        left = true;
      });
    });
    while (inside.load() == 0) platform::yield();
    tests::Interpose step("tm.privatizing", 0, [&] { waiting.store(1); });
    Txs::update([](auto& tx) { tx.write(words[0], Word{7}); });
    EXPECT_TRUE(left.load()) << "the commit returned while an attempt that has seen the old value was running";
    older.join();
  });
}

}  // namespace
}  // namespace loam::tm
