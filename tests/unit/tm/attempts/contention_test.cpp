// Contention managers: each ends a scripted conflict as its definition says, and all end crowds.
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/base/random.hpp"
#include "tests/unit/tm/attempts/contended.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using tests::Trace;

// A door that one thread opens for others.
class Gate {
 public:
  void open() {
    open_.store(1, std::memory_order_release);
    platform::futex_wake(open_, 16);
  }
  void wait() const {
    while (open_.load(std::memory_order_acquire) == 0) platform::futex_wait(open_, 0, 10'000'000);
  }

 private:
  std::atomic<std::uint32_t> open_{0};
};

// ---- what each does in a conflict

TEST(ContentionTest, SuicideNeitherWaitsInsideNorBeforeTheNextTry) {
  LOAM_NEEDS_POINTS();
  under(Manager::suicide, 0, [] {
    Holder a(tests::Kind::update);
    hold(a, x);
    const Trace trace;
    const unsigned attempts = contention::kEagerRetries - 1;
    EXPECT_FALSE(tests::attempt_update<Txs>(attempts, [](auto& tx) { tx.write(x, Word{2}); }));
    EXPECT_EQ(trace.count("tm.began"), attempts + 1) << "and the one that gives up";
    EXPECT_EQ(trace.count("tm.waiting"), 0u);
  });
}

TEST(ContentionTest, PureSuicideNeverWaitsAndNeverRunsAlone) {
  LOAM_NEEDS_POINTS();
  constexpr unsigned kAttempts = 4 * kSerialiseAfter;
  under(Manager::pure_suicide, kSerialiseAfter, [] {
    {
      Holder a(tests::Kind::update);
      hold(a, x);
      const Trace trace;
      EXPECT_FALSE(tests::attempt_update<Txs>(kAttempts, [](auto& tx) { tx.write(x, Word{2}); }));
      EXPECT_EQ(trace.count("tm.began"), kAttempts + 1) << "and the one that gives up";
      EXPECT_EQ(trace.count("tm.waiting"), 0u);
    }
    // Behind no owner, so that each abort would count.
    unsigned attempts = 0;
    Txs::update([&](auto& tx) { fail_until(tx, ++attempts, kAttempts); });
    EXPECT_EQ(attempts, kAttempts + 1);
    EXPECT_EQ(statistics_of_all().serialised, 0u);
  });
}

TEST(ContentionTest, AfterEightAbortsEveryOtherManagerWaitsForTheRecord) {
  LOAM_NEEDS_POINTS();
  for (const Manager manager : {Manager::suicide, Manager::timestamp})
    under(manager, 0,
          [&] {
            Holder a(tests::Kind::update);
            hold(a, x);
            owner_state(x).priority = ~std::uint64_t{0};  // nobody goes before it
            const Trace trace([&](std::string_view point, unsigned nth) {
              if (point == "tm.waiting" && nth == 2) a.commit();
            });
            EXPECT_EQ(attempts_to_add(x), contention::kEagerRetries + 1);
            EXPECT_EQ(trace.waits_inside(), 0u);
            EXPECT_GE(trace.waits_outside(), 2u);
            EXPECT_EQ(x, 2u);
          },
          {.free_ns = kForEver});
}

TEST(ContentionTest, DelayTriesAgainOnceTheRecordIsFreeWhoeverHasItMeanwhile) {
  LOAM_NEEDS_POINTS();
  under(Manager::delay, 0,
        [] {
          Holder a(tests::Kind::update), c(tests::Kind::update);
          hold(a, x);
          c.begin();  // so that it does not get the descriptor of the thread of `a`, which ends
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point != "tm.waiting") return;
            if (nth == 1) {
              a.commit();
              c.write(x, 1);
            }
            if (nth == 4) c.commit();
          });
          EXPECT_EQ(attempts_to_add(x), 2u);
          EXPECT_EQ(trace.waits_inside(), 0u);
          EXPECT_GE(trace.waits_outside(), 4u);
          EXPECT_EQ(c.fate(), tests::Fate::committed);
        },
        {.free_ns = kForEver});
}

TEST(ContentionTest, DelayWaitsForARecordThatAReadOnlyAttemptMet) {
  LOAM_NEEDS_POINTS();
  under(Manager::delay, 0,
        [] {
          Holder a(tests::Kind::update);
          hold(a, x);
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point == "tm.waiting" && nth == 1) a.commit();
          });
          unsigned attempts = 0;
          EXPECT_EQ(Txs::read_only([&](auto& tx) {
                      ++attempts;
                      return tx.read(x);
                    }),
                    1u);
          EXPECT_EQ(attempts, 2u);
        },
        {.free_ns = kForEver});
}

TEST(ContentionTest, BackoffWaitsBeforeTheNextTryForATimeThatDoublesUpToABound) {
  LOAM_NEEDS_POINTS();
  EXPECT_EQ(contention::backoff_ns_below(1), 2 * contention::kBackoffNsLeast);
  for (unsigned aborts = 1; aborts < 9; ++aborts)
    EXPECT_EQ(contention::backoff_ns_below(aborts + 1), 2 * contention::backoff_ns_below(aborts));
  for (const unsigned aborts : {10u, 16u, 63u, 64u, 1'000'000u})
    EXPECT_EQ(contention::backoff_ns_below(aborts), contention::kBackoffNsMost);
  under(Manager::backoff, 0, [] {
    Holder a(tests::Kind::update);
    hold(a, x);
    const Trace trace;
    EXPECT_FALSE(tests::attempt_update<Txs>(7, [](auto& tx) { tx.write(x, Word{2}); }));
    EXPECT_EQ(trace.waits_inside(), 0u);
    EXPECT_GT(trace.waits_outside(), 0u);
    // Two threads that back off from each other must not do it in step.
    const auto draws = [] {
      base::Random random = Descriptor::current().contention.random;
      std::vector<std::uint32_t> drawn(8);
      for (auto& one : drawn) one = random.below(1'000'000);
      return drawn;
    };
    // Two new threads at the same time, so in two slots.
    std::vector<std::uint32_t> one, other;
    std::thread([&] {
      one = draws();
      std::thread([&] { other = draws(); }).join();
    }).join();
    EXPECT_NE(one, other);
  });
}

TEST(ContentionTest, KarmaWhoHasDoneMoreWaitsForTheOwnerInsideTheAttempt) {
  LOAM_NEEDS_POINTS();
  under(Manager::karma, 0,
        [] {
          Holder a(tests::Kind::update);
          hold(a, x);
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point == "tm.waiting" && nth == 1) {
              EXPECT_EQ(Descriptor::current().contention.priority.load(), 5u) << "five reads, shown while it waits";
              a.commit();
            }
          });
          EXPECT_EQ(attempts_to_add(x, 5), 1u);
          EXPECT_GE(trace.waits_inside(), 1u);
          EXPECT_EQ(Descriptor::current().contention.priority.load(), 0u) << "not into the next transaction";
        },
        {.owner_ns = kForEver});
}

TEST(ContentionTest, KarmaWhoHasDoneLessAbortsAndKeepsItsWorkUntilItSuffices) {
  LOAM_NEEDS_POINTS();
  under(Manager::karma, 0,
        [] {
          Holder a(tests::Kind::update);
          hold(a, x);
          owner_state(x).priority = 20;
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point == "tm.waiting" && nth == 1) a.commit();
          });
          // Each try is worth 1 and its five reads: 5, 11, 17, 23.
          EXPECT_EQ(attempts_to_add(x, 5), 4u);
          EXPECT_EQ(trace.waits_outside(), 0u);
          EXPECT_EQ(Descriptor::current().contention.earned, 0u) << "spent at commit";
          EXPECT_EQ(Descriptor::current().contention.priority.load(), 0u);
        },
        {.owner_ns = kForEver});
}

TEST(ContentionTest, OfTwoThatHoldWhatTheOtherWantsTheLowerOneAbortsAtOnce) {
  LOAM_NEEDS_POINTS();
  under(Manager::karma, 0,
        [] {
          Gate a_waits, b_holds, b_waits, a_aborted, b_done;
          unsigned b_attempts = 0;
          std::thread b([&] {
            const Trace trace([&](std::string_view point, unsigned nth) {
              if (point != "tm.waiting" || nth != 1) return;
              b_waits.open();
              a_aborted.wait();
            });
            Txs::update([&](auto& tx) {
              ++b_attempts;
              for (unsigned i = 0; i < 10; ++i) tx.read(words[32 + i].word);
              tx.write(y, Word{2});
              b_holds.open();
              a_waits.wait();
              tx.write(x, Word{2});
            });
            b_done.open();
          });
          unsigned a_attempts = 0, a_waited = 0;
          {
            const Trace trace([&](std::string_view point, unsigned nth) {
              if (point == "tm.aborted") a_aborted.open();
              if (point != "tm.waiting" || a_attempts > 1) return;
              a_waited = nth;
              if (nth != 1) return a_aborted.open();  // it should have aborted: let both go on
              a_waits.open();
              b_waits.wait();
            });
            Txs::update([&](auto& tx) {
              if (++a_attempts > 1) b_done.wait();
              tx.write(x, Word{1});
              if (a_attempts == 1) b_holds.wait();
              tx.write(y, Word{1});
            });
          }
          b.join();
          EXPECT_EQ(a_waited, 1u) << "it looks at the other's priority again after each wait";
          EXPECT_EQ(a_attempts, 2u);
          EXPECT_EQ(b_attempts, 1u);
          EXPECT_EQ(x, 1u);
          EXPECT_EQ(y, 1u);
        },
        {.owner_ns = kForEver});
}

TEST(ContentionTest, TimestampWhoLostFirstWaitsTheYoungerAborts) {
  LOAM_NEEDS_POINTS();
  under(Manager::timestamp, 0,
        [] {
          Holder a(tests::Kind::update);
          hold(a, x);
          {
            const Trace trace([&](std::string_view point, unsigned nth) {
              if (point == "tm.waiting" && nth == 1) a.commit();
            });
            EXPECT_EQ(attempts_to_add(x), 2u) << "the first try loses and draws the age, the second one waits";
            EXPECT_EQ(trace.waits_outside(), 0u);
            EXPECT_GE(trace.waits_inside(), 1u);
          }
          EXPECT_EQ(Descriptor::current().contention.priority.load(), 0u) << "the next transaction has no age yet";
          Holder older(tests::Kind::update);
          hold(older, x);
          owner_state(x).priority = ~std::uint64_t{0};
          const Trace trace;
          EXPECT_FALSE(tests::attempt_update<Txs>(5, [](auto& tx) { tx.write(x, Word{2}); }));
          EXPECT_EQ(trace.count("tm.waiting"), 0u);
          EXPECT_EQ(Descriptor::current().contention.priority.load(), 0u) << "nor after an exception";
        },
        {.owner_ns = kForEver});
}

TEST(ContentionTest, AnOwnerThatStandsStillIsNotWaitedForBeyondTheBound) {
  for (const Manager manager : kManagers)
    under(manager, 0, [] {
      Holder a(tests::Kind::update);
      hold(a, x);
      EXPECT_FALSE(tests::attempt_update<Txs>(30, [](auto& tx) {
        for (unsigned i = 0; i < 10; ++i) tx.read(words[32 + i].word);
        tx.write(x, Word{2});
      }));
    });
}

// ---- crowds

TEST(ContentionTest, EightThreadsOnFewWordsEndUnderEveryManager) {
  constexpr unsigned kThreads = 8, kRounds = 400;
  for (const Manager manager : kManagers)
    for (const unsigned serialise_after : {0u, 1u, kSerialiseAfter})
      under(manager, serialise_after, [] {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < kThreads; ++t)
          threads.emplace_back([t] {
            base::Random random(5, t);
            for (unsigned i = 0; i < kRounds; ++i) {
              // In opposite orders, so that each may hold what the other wants.
              const unsigned first = random.below(3), second = (first + 1 + random.below(2)) % 3;
              Txs::update([&](auto& tx) {
                tx.write(words[first].word, tx.read(words[first].word) + 1);
                tx.write(words[second].word, tx.read(words[second].word) + 1);
              });
            }
          });
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(words[0].word + words[1].word + words[2].word, 2u * kThreads * kRounds);
      });
}

}  // namespace
}  // namespace loam::tm
