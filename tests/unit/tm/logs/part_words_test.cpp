// Words of which an attempt has written a part: what it reads of the rest is memory's, is valid together with its other
// reads, and is waited for like them.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <unistd.h>

namespace loam::tm {
namespace {

struct PartWordsTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, PartWordsTest, testing::ValuesIn(tests::variants({"table", "small_table", "shadow"})),
                         tests::variant_name);

// Read and written as one word, or by half.
struct alignas(kWordBytes) Halves {
  std::uint32_t low, high;
};

alignas(1024) struct {
  Halves word;
  alignas(256) Word y;
} space;
Halves& word = space.word;
Word& y = space.y;

// Runs wait(tx), which retries until change(tx) has been committed, in another thread.
template <class Driver, class Wait, class Change>
void waits_until(Wait&& wait, Change&& change) {
  alarm(20);  // a waiter that nobody wakes would wait for ever
  std::atomic<int> attempts{0};
  std::thread waiter([&] {
    Driver::update([&](auto& tx) {
      ++attempts;
      wait(tx);
    });
  });
  while (attempts.load() == 0) platform::yield();
  platform::sleep_ns(3'000'000);  // it sleeps by now, mostly: no test depends on it
  Driver::update(change);
  waiter.join();
  alarm(0);
}

TEST_P(PartWordsTest, TheRestIsWaitedFor) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // With nothing else to wait for, and with something that does not change.
    for (const bool reads_more : {false, true}) {
      word = {0, 0};
      waits_until<Driver>(
          [&](auto& tx) {
            if (reads_more) tx.read(y);
            tx.write(word.low, 7u);
            const Halves seen = tx.read(word);
            EXPECT_EQ(seen.low, 7u);
            if (seen.high == 0) Driver::wait_for_change();
          },
          [](auto& tx) { tx.write(word.high, 1u); });
      EXPECT_EQ(word.low, 7u);
      EXPECT_EQ(word.high, 1u);
    }
  });
}

TEST_P(PartWordsTest, TheRestIsWaitedForAlsoIfItIsThenWritten) {
  tests::in_variant(GetParam(), []<class Driver>() {
    waits_until<Driver>(
        [](auto& tx) {
          tx.write(word.low, 7u);
          const std::uint32_t seen = tx.read(word).high;
          tx.write(word, Halves{8, seen + 1});
          if (seen == 0) Driver::wait_for_change();
        },
        [](auto& tx) { tx.write(word.high, 4u); });
    EXPECT_EQ(word.low, 8u);
    EXPECT_EQ(word.high, 5u);
  });
}

TEST_P(PartWordsTest, ABranchWaitsForTheRestWhoeverHasWrittenThePart) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool written_outside : {true, false}) {
      word = {0, 0};
      int taken = 0;
      waits_until<Driver>(
          [&](auto& tx) {
            if (written_outside) tx.write(word.low, 7u);
            Driver::or_else(
                [&](auto& first) {
                  if (!written_outside) first.write(word.low, 7u);
                  if (first.read(word).high == 0) Driver::wait_for_change();
                  taken = 1;
                },
                [&](auto& second) {
                  if (second.read(y) == 0) Driver::wait_for_change();
                  taken = 2;
                });
          },
          [](auto& tx) { tx.write(word.high, 1u); });
      EXPECT_EQ(taken, 1);
      EXPECT_EQ(word.low, 7u);
    }
  });
}

// What others commit to the rest: the attempt sees all of a commit, or nothing.
TEST_P(PartWordsTest, TheRestAgreesWithWhatElseIsRead) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    Driver::update([&](auto& tx) {
      tx.write(word.low, 7u);
      const Word before = tx.read(y);
      if (attempts++ == 0)
        std::thread([] {
          tests::attempt_update<Driver>(2, [](auto& other) {
            other.write(word.high, 1u);
            other.write(y, Word{1});
          });
        }).join();
      const Halves seen = tx.read(word);
      EXPECT_EQ(seen.low, 7u);
      EXPECT_EQ(seen.high, before);
    });
    EXPECT_EQ(word.low, 7u);
    EXPECT_EQ(word.high, y);
  });
}

TEST_P(PartWordsTest, TheRestIsStillThereAtTheCommit) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    bool committed = false;
    tests::Interpose step("tm.committing", 0, [&] {
      committed =
          tests::attempt_update<Driver>(2, [](auto& other) { other.write(word.high, other.read(y) == 0 ? 5u : 9u); });
    });
    Driver::update([](auto& tx) {
      tx.write(word.low, 7u);
      tx.write(y, Word{tx.read(word).high} + 1);
    });
    EXPECT_TRUE(step.reached());
    EXPECT_EQ(word.low, 7u);
    EXPECT_EQ(word.high, committed ? 5u : 0u);
    EXPECT_EQ(y, committed ? 6u : 1u);
  });
}

}  // namespace
}  // namespace loam::tm
