// The algorithms that let one attempt in at a time: what their undo log takes back, what waits, who is turned away.
// These alone, in every build.
#undef LOAM_TEST_ALGORITHMS
#define LOAM_TEST_ALGORITHMS tm::GlobalLock, tm::Sequential
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

std::vector<tests::Variant> one_at_a_time(unsigned threads) {
  auto all = tests::variants_for(threads);
  std::erase_if(all, [](const tests::Variant& variant) { return tests::description_of(variant).overlaps; });
  return all;
}

struct LockAlgorithmsTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, LockAlgorithmsTest, testing::ValuesIn(one_at_a_time(1)), tests::variant_name);

struct GlobalLockTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, GlobalLockTest, testing::ValuesIn(one_at_a_time(2)), tests::variant_name);

using Words = std::uint64_t[8];

std::int64_t live_blocks() {
  const Statistics all = statistics_of_all();
  return static_cast<std::int64_t>(all.blocks_allocated - all.blocks_freed);
}

TEST_P(LockAlgorithmsTest, AnExceptionTakesBackEveryByteInReverse) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Words words;
    std::iota(std::begin(words), std::end(words), 100);
    auto* const bytes = reinterpret_cast<unsigned char*>(words);
    const std::vector<unsigned char> before(bytes, bytes + sizeof words);
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   for (int round = 1; round < 4; ++round) {
                     for (auto& word : words) tx.write(word, tx.read(word) * 7);
                     for (unsigned i = 1; i < sizeof words; i += 3)
                       tx.write(bytes[i], static_cast<unsigned char>(tx.read(bytes[i]) + round));
                   }
                   EXPECT_NE(words[0], 100u) << "writes are in place";
                   throw std::runtime_error("out");
                 }),
                 std::runtime_error);
    EXPECT_EQ(std::vector<unsigned char>(bytes, bytes + sizeof words), before);
    const Statistics counts = statistics();
    EXPECT_EQ(counts.commits, 0u);
    EXPECT_EQ(counts.aborts[static_cast<std::size_t>(AbortCause::explicit_)], 1u);
  });
}

TEST_P(LockAlgorithmsTest, UndoLeavesAPlainNeighbourInTheWordAlone) {
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(8) unsigned char bytes[8] = {};
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   tx.write(bytes[2], static_cast<unsigned char>(9));
                   bytes[3] = 77;  // not the transaction's
                   throw std::runtime_error("out");
                 }),
                 std::runtime_error);
    EXPECT_EQ(bytes[2], 0);
    EXPECT_EQ(bytes[3], 77);
  });
}

TEST_P(LockAlgorithmsTest, PartsAreTakenBackAloneAndInParts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Words words = {};
    unsigned inner = 0;
    Driver::update([&](auto& tx) {
      tx.write(words[0], std::uint64_t{1});
      EXPECT_TRUE(Driver::closed([&](auto& part) {
        part.write(words[1], part.read(words[0]) + 1);
        EXPECT_FALSE(Driver::closed([&](auto& deeper) {
          ++inner;
          deeper.write(words[0], std::uint64_t{50});
          deeper.write(words[1], std::uint64_t{51});
          deeper.write(words[1], std::uint64_t{52});
          Driver::cancel();
        }));
        EXPECT_EQ(part.read(words[0]), 1u);
        EXPECT_EQ(part.read(words[1]), 2u);
      }));
      EXPECT_THROW(Driver::closed([&](auto& part) {
                     part.write(words[0], std::uint64_t{60});
                     throw std::runtime_error("part");
                   }),
                   std::runtime_error);
      tx.write(words[2], tx.read(words[0]) + 2);
    });
    EXPECT_EQ(inner, 1u);
    EXPECT_EQ(words[0], 1u);
    EXPECT_EQ(words[1], 2u);
    EXPECT_EQ(words[2], 3u);
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   tx.write(words[0], std::uint64_t{9});
                   Driver::cancel();
                 }),
                 Cancelled);
    EXPECT_EQ(words[0], 1u);
  });
}

TEST_P(LockAlgorithmsTest, OrElseTakesTheFirstBranchBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Words words = {};
    Driver::update([&](auto&) {
      Driver::or_else(
          [&](auto& first) {
            first.write(words[0], std::uint64_t{5});
            Driver::wait_for_change();
          },
          [&](auto& second) { second.write(words[1], second.read(words[0]) + 1); });
    });
    EXPECT_EQ(words[0], 0u);
    EXPECT_EQ(words[1], 1u);
  });
}

TEST_P(LockAlgorithmsTest, MemoryAndHandlersFollowTheOutcome) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int committed = 0, aborted = 0;
    static std::uint64_t* kept = nullptr;
    const auto with_handlers = [](auto& tx) {
      tx.on_commit([] {
        committed += 1 + static_cast<int>(Driver::read_only([](auto& in) { return in.read(kept); }) == nullptr);
      });
      tx.on_abort([] {
        aborted += 1 + static_cast<int>(Driver::read_only([](auto& in) { return in.read(kept); }) != nullptr);
      });
    };
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   with_handlers(tx);
                   tx.write(kept, tx.template create<std::uint64_t>(4u));
                   throw std::runtime_error("out");
                 }),
                 std::runtime_error);
    EXPECT_EQ(live_blocks(), 0);
    EXPECT_EQ(aborted, 1) << "once, after the undo and outside of the lock";
    Driver::update([&](auto& tx) {
      with_handlers(tx);
      tx.write(kept, tx.template create<std::uint64_t>(4u));
    });
    EXPECT_EQ(committed, 1);
    EXPECT_EQ(live_blocks(), 1);
    Driver::update([](auto& tx) {
      tx.destroy(tx.read(kept));
      tx.write(kept, static_cast<std::uint64_t*>(nullptr));
    });
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST_P(LockAlgorithmsTest, IrrevocableFromOutsideAndFromWithin) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Words words = {};
    int attempts = 0;
    Driver::irrevocable([&](auto& tx) { tx.write(words[0], std::uint64_t{1}); });
    Driver::update([&](auto& tx) {
      ++attempts;
      tx.write(words[1], tx.read(words[1]) + 1);
      Driver::irrevocable([&](auto& alone) { alone.write(words[2], alone.read(words[1]) + 1); });
    });
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(words[0], 1u);
    EXPECT_EQ(words[1], 1u) << "the first attempt's write was taken back";
    EXPECT_EQ(words[2], 2u);
    Driver::update([&](auto& tx) { tx.write(words[0], std::uint64_t{2}); });  // the lock is free again
    EXPECT_EQ(words[0], 2u);
  });
}

TEST(SequentialTest, ASecondThreadIsTurnedAwayAndOneAfterTheOtherIsNot) {
  using Driver = Driver<Sequential<false>>;
  static std::uint64_t word = 0;
  tests::in_child([] {
    for (int i = 0; i < 3; ++i)
      std::thread([] { Driver::update([](auto& tx) { tx.write(word, tx.read(word) + 1); }); }).join();
    EXPECT_EQ(word, 3u);
  });
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Driver::update([](auto& tx) { tx.write(word, std::uint64_t{1}); });
        std::thread([] { Driver::read_only([](auto& tx) { return tx.read(word); }); }).join();
      },
      "second thread under the algorithm sequential");
  EXPECT_DEATH(Driver::update([](auto&) { Driver::wait_for_change(); }), "retry.. under the algorithm sequential");
}

TEST_P(GlobalLockTest, ABeginWaitsUntilTheOtherAttemptHasEnded) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const char* point : {"tm.began", "tm.reading", "tm.locked", "tm.written"}) {
      static std::uint64_t word, seen;
      word = seen = 0;
      std::atomic<bool> done{false};
      std::thread other;
      tests::Interpose step(point, 0, [&] {
        other = std::thread([&] {
          seen = Driver::read_only([&](auto& tx) { return tx.read(word); });
          done.store(true);
        });
        platform::sleep_ns(20'000'000);
        EXPECT_FALSE(done.load()) << point;
      });
      Driver::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
      other.join();
      EXPECT_TRUE(step.reached());
      EXPECT_EQ(seen, 1u) << point;
    }
  });
}

TEST_P(GlobalLockTest, RetrySleepsUntilACommitAndFindsItsChange) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static std::uint64_t full = 0, taken = 0;
    static std::atomic<int> attempts{0};
    std::thread consumer([] {
      Driver::update([](auto& tx) {
        ++attempts;
        if (tx.read(full) == 0) Driver::wait_for_change();
        tx.write(full, std::uint64_t{0});
        tx.write(taken, tx.read(taken) + 1);
      });
    });
    while (attempts.load() == 0) platform::sleep_ns(1'000'000);
    platform::sleep_ns(50'000'000);
    EXPECT_EQ(attempts.load(), 1) << "it sleeps while nobody commits";
    Driver::update([](auto& tx) { tx.write(full, std::uint64_t{1}); });
    consumer.join();
    EXPECT_EQ(full, 0u);
    EXPECT_EQ(taken, 1u);
  });
}

TEST_P(GlobalLockTest, PrivatizationByCommitWaitsForNobody) {
  tests::Variant variant = GetParam();
  variant.config.privatization = Privatization::commit;
  tests::in_variant(variant, []<class Driver>() {
    static std::uint64_t word = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 2000; ++i) {
          Driver::update([](auto& tx) { tx.write(word, tx.read(word) + 1); });
          Driver::read_only([](auto& tx) { return tx.read(word); });
          if (i % 500 == 0) Driver::irrevocable([](auto& tx) { tx.write(word, tx.read(word) + 1); });
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(word, 4u * (2000 + 4));
    EXPECT_EQ(statistics_of_all().aborts_total(), 0u);
  });
}

}  // namespace
}  // namespace loam::tm
