// Nobody starves: an old writer gets past younger ones, and whoever aborts too often runs alone.
#include "runtime/base/random.hpp"
#include "tests/unit/tm/attempts/contended.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using tests::Trace;

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
        // Counted once it has read: one that stands still before that would see the change, and nobody would go on.
        const Word seen = tx.read(words[3].word);
        const unsigned attempt = ++attempts;
        if (seen < kWaits) Txs::wait_for_change();
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
