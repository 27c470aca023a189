// Exceptions that leave a body: cancel or commit, by choice; nothing of them is leaked (LeakSanitizer, counts).
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include <pthread.h>

namespace loam::tm {
namespace {

struct ExceptionsTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, ExceptionsTest, testing::ValuesIn(tests::variants({"table", "small_table"})),
                         tests::variant_name);

alignas(1024) Word words[64];
Word& x = words[0];
Word& y = words[16];

// Counts its copies that are alive.
struct Counted {
  static inline int alive = 0;
  Word value;
  explicit Counted(Word v) : value(v) { ++alive; }
  Counted(const Counted& other) : value(other.value) { ++alive; }
  ~Counted() { --alive; }
};

template <class Driver>
void add_one(Word& word) {
  std::thread([&] { Driver::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); }); }).join();
}

TEST_P(ExceptionsTest, CancelOnThrowTakesBackAllAndPassesTheExceptionOn) {
  tests::in_variant(GetParam(), []<class Driver>() {
    try {
      Driver::update([](auto& tx) {
        tx.write(x, Word{1});
        tx.template create<Word>(1u);
        throw Counted(tx.read(x));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Counted& thrown) {
      EXPECT_EQ(thrown.value, 1u) << "what it carries was seen inside";
    }
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(statistics().commits, 0u);
    EXPECT_EQ(statistics().blocks_freed, 1u);
  });
}

TEST_P(ExceptionsTest, CommitOnThrowCommitsAndPassesTheExceptionOn) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int handlers;
    handlers = 0;
    try {
      Driver::template update<OnThrow::commit>([](auto& tx) {
        tx.write(x, Word{1});
        tx.on_commit([] { handlers += 1; });
        tx.on_abort([] { handlers += 10; });
        throw Counted(7);
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Counted& thrown) {
      EXPECT_EQ(thrown.value, 7u);
      EXPECT_EQ(x, 1u) << "committed before it passes on";
      EXPECT_EQ(handlers, 1);
    }
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(statistics().commits, 1u);
    const Word result = Driver::template update<OnThrow::commit>([](auto& tx) { return tx.read(x) + 1; });
    EXPECT_EQ(result, 2u);
  });
}

TEST_P(ExceptionsTest, AnAttemptThatFailsToCommitDropsItsException) {
  LOAM_NEEDS_POINTS();
  if (tests::readers_block_writers(GetParam())) GTEST_SKIP() << "an attempt that has come to its end commits";
  tests::in_variant(GetParam(), []<class Driver>() {
    // The first attempt throws and then fails to commit; the second one does not throw.
    tests::Interpose step("tm.committing", 0, [] { add_one<Driver>(x); });
    int attempts = 0;
    const Word seen = Driver::template update<OnThrow::commit>([&](auto& tx) {
      const Word value = tx.read(x);
      tx.write(y, value);
      if (attempts++ == 0) throw Counted(value);
      EXPECT_EQ(Counted::alive, 0);
      return value;
    });
    EXPECT_TRUE(step.reached());
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(seen, 1u);
    EXPECT_EQ(Counted::alive, 0);
    // And again, throwing each time: the exception of the attempt that committed arrives.
    tests::Interpose again("tm.committing", 0, [] { add_one<Driver>(x); });
    try {
      Driver::template update<OnThrow::commit>([&](auto& tx) {
        const Word value = tx.read(x);
        tx.write(y, value + 10);
        throw Counted(value);
      });
    } catch (const Counted& thrown) {
      EXPECT_EQ(thrown.value, 2u);
      EXPECT_EQ(y, 12u);
    }
    EXPECT_EQ(Counted::alive, 0);
  });
}

TEST_P(ExceptionsTest, ThousandsThatAreDroppedLeaveNoMemoryBehind) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::vector<std::thread> threads;
    std::atomic<int> caught{0};
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) try {
            Driver::template update<OnThrow::commit>([](auto& tx) {
              tx.write(x, tx.read(x) + 1);
              throw std::runtime_error(std::string(100, 'x'));
            });
          } catch (const std::runtime_error& error) {
            caught += std::string(error.what()).size() == 100;
          }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(caught.load(), 3000);
    EXPECT_EQ(x, 3000u);
  });
}

TEST_P(ExceptionsTest, ThePartThatAnExceptionLeavesIsTakenBackEvenIfTheRestCommits) {
  tests::in_variant(GetParam(), []<class Driver>() {
    EXPECT_THROW(Driver::template update<OnThrow::commit>([](auto& tx) {
                   tx.write(x, Word{1});
                   Driver::closed([](auto& part) {
                     part.write(y, Word{1});
                     throw std::runtime_error("in a part");
                   });
                 }),
                 std::runtime_error);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 0u);
  });
}

#if !defined(LOAM_TSAN)  // whose pthread_exit does not unwind
TEST_P(ExceptionsTest, AThreadThatEndsInsideATransactionTakesItBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::thread([] {
      Driver::template update<OnThrow::commit>([](auto& tx) {
        tx.write(x, Word{1});
        pthread_exit(nullptr);
      });
    }).join();
    EXPECT_EQ(x, 0u);
    add_one<Driver>(x);
    EXPECT_EQ(x, 1u);
  });
}
#endif

}  // namespace
}  // namespace loam::tm
