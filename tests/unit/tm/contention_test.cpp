// Contention managers: each ends a scripted conflict as its definition says, all end crowds, nobody starves.
//   On etl-wb, which asks them at every lock that it meets.
#include "runtime/tm/contention.hpp"
#include "runtime/base/random.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/stepper.hpp"

#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using Txs = Driver<EtlWb<false>>;
using Holder = tests::Stepper<Txs>;
constexpr Manager kManagers[] = {Manager::suicide, Manager::delay, Manager::backoff, Manager::karma,
                                 Manager::timestamp};
constexpr std::uint64_t kForEver = 20'000'000'000;

// Words on records of their own.
struct alignas(64) Apart {
  Word word = 0;
};
Apart words[64];
Word &x = words[0].word, &y = words[1].word;

// Calls body() in a process of its own under `manager`.
template <class Body>
void under(Manager manager, unsigned serialise_after, Body&& body, contention::Waits waits = {}) {
  tests::in_child([&] {
    contention::waits = waits;
    SCOPED_TRACE(contention::kManagerNames[static_cast<std::size_t>(manager)]);
    configure({.manager = manager, .privatization = Privatization::none, .serialise_after = serialise_after});
    body();
  });
}

// The test points that the calling thread passes, with an action at the n-th of a name (from 1).
class Trace {
 public:
  using Action = std::function<void(std::string_view point, unsigned nth)>;

  explicit Trace(Action action = {}) : action_(std::move(action)) {
    current() = this;
#ifdef LOAM_CHECKED
    base::point_hook.store(&Trace::reach, std::memory_order_release);
#endif
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { current() = nullptr; }

  unsigned count(std::string_view point) const {
    return static_cast<unsigned>(std::count(points_.begin(), points_.end(), point));
  }
  // Of waits, those between the begin of an attempt and its end.
  unsigned waits_inside() const { return waits(true); }
  unsigned waits_outside() const { return waits(false); }

 private:
  static Trace*& current() {
    thread_local Trace* trace = nullptr;
    return trace;
  }
  [[maybe_unused]] static void reach(const char* name) {
    Trace* const trace = current();
    if (trace == nullptr) return;
    trace->points_.emplace_back(name);
    if (trace->action_) trace->action_(name, trace->count(name));
  }
  unsigned waits(bool wanted) const {
    bool inside = false;
    unsigned found = 0;
    for (const std::string& point : points_) {
      if (point == "tm.began") inside = true;
      if (point == "tm.aborted") inside = false;
      found += point == "tm.waiting" && inside == wanted;
    }
    return found;
  }

  std::vector<std::string> points_;
  Action action_;
};

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

void hold(Holder& holder, Word& word) {
  holder.begin();
  holder.write(word, 1);
}

Contention& owner_state(const Word& word) {
  return Descriptor::of_slot(owner_of(shared.map.record(&word).load()))->contention;
}

// Adds one to `word`. returns the attempts
unsigned attempts_to_add(Word& word, unsigned reads_before = 0) {
  unsigned attempts = 0;
  Txs::update([&](auto& tx) {
    ++attempts;
    for (unsigned i = 0; i < reads_before; ++i) tx.read(words[32 + i].word);
    tx.write(word, tx.read(word) + 1);
  });
  return attempts;
}

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

TEST(ContentionTest, AfterEightAbortsEveryManagerWaitsForTheRecord) {
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
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point != "tm.waiting") return;
            if (nth == 1) {
              a.commit();
              hold(c, x);
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
    std::vector<std::uint32_t> theirs;
    std::thread([&] { theirs = draws(); }).join();
    EXPECT_NE(draws(), theirs);
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

// ---- nobody starves

TEST(StarvationTest, AnOldWriterGetsPastTheLocksOfYoungerOnesInOneAttempt) {
  LOAM_NEEDS_POINTS();
  under(Manager::timestamp, 0,
        [] {
          constexpr unsigned kHolders = 8;
          std::vector<std::unique_ptr<Holder>> holders;
          for (unsigned i = 0; i < kHolders; ++i) {
            holders.push_back(std::make_unique<Holder>(tests::Kind::update));
            hold(*holders.back(), words[i].word);
          }
          unsigned next = 0;
          const Trace trace([&](std::string_view point, unsigned) {
            if (point == "tm.waiting" && next < kHolders) holders[next++]->commit();
          });
          unsigned attempts = 0;
          Txs::update([&](auto& tx) {
            ++attempts;
            for (unsigned i = 0; i < kHolders; ++i) tx.write(words[i].word, Word{7});
          });
          EXPECT_EQ(attempts, 2u);
          for (unsigned i = 0; i < kHolders; ++i) EXPECT_EQ(words[i].word, 7u);
        },
        {.owner_ns = kForEver});
}

// A body that finds what it has read changed at each of its first `failures` tries.
template <class Tx>
void fail_until(Tx& tx, unsigned attempt, unsigned failures) {
  const Word before = tx.read(x);
  if (attempt <= failures)
    std::thread([] {
      Txs::update([](auto& other) {
        other.write(x, other.read(x) + 1);
        other.write(y, other.read(y) + 1);
      });
    }).join();
  EXPECT_EQ(tx.read(y), before);
}

TEST(StarvationTest, AReaderThatAlwaysLosesRunsAloneAfterItsLimit) {
  for (const Manager manager : kManagers)
    under(manager, kSerialiseAfter, [] {
      unsigned attempts = 0;
      Txs::update([&](auto& tx) {
        fail_until(tx, ++attempts, kSerialiseAfter);
        tx.write(words[2].word, Word{1});
      });
      EXPECT_EQ(attempts, kSerialiseAfter + 1);
      EXPECT_EQ(words[2].word, 1u);
      EXPECT_EQ(statistics().serialised, 1u);
      EXPECT_EQ(statistics_of_all().serialised, 1u);
    });
  under(Manager::suicide, 0, [] {
    unsigned attempts = 0;
    Txs::update([&](auto& tx) { fail_until(tx, ++attempts, 100); });
    EXPECT_EQ(attempts, 101u);
    EXPECT_EQ(statistics().serialised, 0u) << "0: never";
  });
}

TEST(StarvationTest, AbortsBehindAnOwnerThatStandsStillDoNotCount) {
  for (const Manager manager : {Manager::suicide, Manager::delay, Manager::backoff})
    under(manager, kSerialiseAfter,
          [] {
            Holder a(tests::Kind::update);
            hold(a, x);
            EXPECT_FALSE(tests::attempt_update<Txs>(3 * kSerialiseAfter, [](auto& tx) { tx.write(x, Word{2}); }));
            EXPECT_EQ(statistics().serialised, 0u) << "alone it would have to wait for the same owner";
            EXPECT_EQ(statistics().aborts_total(), 3u * kSerialiseAfter + 1);
          },
          {.free_ns = 100'000});
}

TEST(StarvationTest, TriesThatEndedInRetryDoNotCount) {
  constexpr unsigned kLimit = 4, kWaits = 12;
  under(Manager::suicide, kLimit, [] {
    static std::atomic<unsigned> attempts{0};
    std::thread consumer([] {
      Txs::update([](auto& tx) {
        const unsigned attempt = ++attempts;
        if (tx.read(words[3].word) < kWaits) Txs::wait_for_change();
        if (attempt == kWaits + 1) fail_until(tx, 1, 1);
      });
      EXPECT_EQ(statistics().serialised, 0u);
    });
    for (unsigned i = 1; i <= kWaits; ++i) {
      while (attempts.load() < i) platform::sleep_ns(100'000);
      platform::sleep_ns(2'000'000);  // it has gone to sleep, or sees the change anyway
      Txs::update([](auto& tx) { tx.write(words[3].word, tx.read(words[3].word) + 1); });
    }
    consumer.join();
    EXPECT_GE(attempts.load(), kWaits + 2);
  });
}

TEST(StarvationTest, ALongTransactionAmongShortOnesCommitsWithinItsLimit) {
  constexpr unsigned kShort = 3, kLong = 4;
  for (const Manager manager : kManagers)
    under(manager, kSerialiseAfter, [] {
      std::atomic<bool> stop{false};
      std::vector<std::thread> threads;
      for (unsigned t = 0; t < kShort; ++t)
        threads.emplace_back([&, t] {
          base::Random random(9, t);
          while (!stop.load(std::memory_order_relaxed)) {
            Word& word = words[random.below(64)].word;
            Txs::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
          }
        });
      for (unsigned i = 0; i < kLong; ++i) {
        unsigned attempts = 0, stalls = 0;
        Txs::update([&](auto& tx) {
          if (Descriptor::current().mode == Mode::update) stalls = Descriptor::current().contention.stalls;
          // The last abort may be a stall that is not seen here.
          EXPECT_LE(++attempts, kSerialiseAfter + stalls + 2);
          Word sum = 0;
          for (unsigned i = 0; i < std::size(words); ++i) {
            sum += tx.read(words[i].word);
            if (i % 16 == 0) platform::yield();
          }
          tx.write(words[0].word, sum);
        });
      }
      stop.store(true);
      for (auto& thread : threads) thread.join();
    });
}

}  // namespace
}  // namespace loam::tm
