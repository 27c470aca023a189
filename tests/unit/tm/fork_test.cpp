// fork: the child goes on with one thread, and nothing that the others held stands in its way.
#include "tests/harness/instrumented.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace loam::tm {
namespace {

std::vector<tests::Variant> fork_variants() {
  auto all = tests::variants({"table", "shadow"});
  for (tests::Variant each : tests::variants({"table"})) {
    each.mapping = "table_privatizing";
    each.privatization = Privatization::commit;
    all.push_back(each);
  }
  return all;
}

struct ForkTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, ForkTest, testing::ValuesIn(fork_variants()), tests::variant_name);

using tests::in_fork, tests::words, tests::x, tests::y;

// A sanitizer's own allocator may be locked for ever in the child of a process with threads: a child that allocates
// there, or starts a thread, may hang.
using tests::kInstrumented;

TEST_P(ForkTest, TheChildGoesOnWhileOthersWereInTheMiddleOfIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static Word* cell = nullptr;
    std::atomic<bool> stop{false};
    std::vector<std::thread> others;
    for (int t = 0; t < 3; ++t)
      others.emplace_back([&] {
        while (!stop.load(std::memory_order_relaxed)) {
          Driver::update([](auto& tx) {
            tx.write(x, tx.read(x) + 1);
            tx.write(y, tx.read(y) + 1);
            if (Word* const old = tx.read(cell)) tx.destroy(old);
            tx.write(cell, tx.template create<Word>(Word{1}));
          });
          Driver::irrevocable([](auto& tx) { tx.read(x); });
        }
      });
    others.emplace_back([&] {  // sleeps through it all
      Driver::update([](auto& tx) {
        if (tx.read(words[32]) == 0) Driver::wait_for_change();
      });
    });
    for (int round = 0; round < 20; ++round)
      EXPECT_TRUE(in_fork([] {
        const Word before = Driver::read_only([](auto& tx) { return tx.read(x); });
        bool good = before == Driver::read_only([](auto& tx) { return tx.read(y); });
        for (int i = 0; i < 500; ++i)
          Driver::update([](auto& tx) {
            tx.write(x, tx.read(x) + 1);
            if constexpr (!kInstrumented) {
              tx.destroy(tx.read(cell));
              tx.write(cell, tx.template create<Word>(Word{1}));
            }
          });
        Driver::irrevocable([](auto& tx) { tx.write(y, tx.read(y) + 1); });
        good &= x == before + 500 && y == before + 1;
        if constexpr (kInstrumented) return good;
        // Threads of its own, in the slots of those that are gone.
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
          threads.emplace_back([] {
            for (int i = 0; i < 100; ++i) Driver::update([](auto& tx) { tx.write(x, tx.read(x) + 1); });
          });
        for (auto& thread : threads) thread.join();
        good &= x == before + 800;
        // Nobody holds anything back.
        return good && quiesce() == 0 && memory::held_back_of_all().blocks == 0;
      })) << round;
    stop.store(true);
    Driver::update([](auto& tx) { tx.write(words[32], Word{1}); });
    for (auto& other : others) other.join();
    EXPECT_EQ(x, y);
  });
}

// The process's first transaction is about to begin in another thread.
TEST_P(ForkTest, AForkWaitsForAThreadThatAttaches) {
  LOAM_NEEDS_POINTS();
#ifdef LOAM_TSAN
  GTEST_SKIP() << "the thread sanitizer takes the parent's thread for one that the child has not joined";
#endif
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<bool> attaching{false}, goes_on{false};
    std::thread first([&] {
      tests::Interpose pause("tm.attaching", 0, [&] {
        attaching = true;
        platform::sleep_ns(50'000'000);
        goes_on = true;
      });
      Driver::update([](auto& tx) { tx.write(x, tx.read(x) + 1); });
      EXPECT_TRUE(pause.reached());
    });
    while (!attaching) platform::yield();
    EXPECT_TRUE(in_fork([&] {
      Driver::update([](auto& tx) { tx.write(y, tx.read(y) + 1); });
      return goes_on && y == 1;
    })) << "the child has a thread that was attaching";
    first.join();
    EXPECT_EQ(x, 1u);
  });
}

TEST_P(ForkTest, AThreadWithoutTransactionsMayFork) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::thread([] { Driver::update([](auto& tx) { tx.write(x, Word{1}); }); }).join();
    EXPECT_TRUE(in_fork([] {
      Driver::update([](auto& tx) { tx.write(x, tx.read(x) + 1); });
      return x == 2;
    }));
    Driver::update([](auto& tx) { tx.write(y, tx.read(x)); });
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(ForkTest, AnIrrevocableTransactionMayForkAndBothGoOnWithIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    bool child_was_good = false;
    Driver::irrevocable([&](auto& tx) {
      tx.write(x, Word{1});
      child_was_good = in_fork([&] {
        tx.write(x, tx.read(x) + 1);
        return x == 2 && serial::closed();
      });
      EXPECT_TRUE(serial::closed());
    });
    EXPECT_TRUE(child_was_good);
    EXPECT_EQ(x, 1u);
    std::thread([] { Driver::update([](auto& tx) { tx.write(x, Word{5}); }); }).join();
    EXPECT_EQ(x, 5u);
  });
}

TEST_P(ForkTest, AHandlerMayFork) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static bool good;
    const auto fork_and_commit = [] {
      good = in_fork([] {
        Driver::update([](auto& tx) { tx.write(x, tx.read(x) + 1); });
        return x == 1;
      });
    };
    good = false;
    Driver::update([&](auto& tx) { tx.on_commit(fork_and_commit); });
    EXPECT_TRUE(good);
    // One of an aborted attempt, whose transaction goes on, in the child as well.
    int attempts = 0;
    const pid_t parent = getpid();
    Driver::update([&](auto& tx) {
      const Word seen = tx.read(words[32]);
      if (attempts++ == 0) {
        tx.on_abort([] {
          Driver::update([](auto& own) { own.write(y, Word{1}); });
          const pid_t child = fork();
          if (child == 0) return;
          int status = 0;
          waitpid(child, &status, 0);
          good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        });
        good = false;
        Driver::irrevocable([](auto&) {});  // aborts: the transaction has to run alone
      }
      tx.write(words[32], seen + 1);
    });
    if (getpid() != parent) _exit(words[32] == 1 ? 0 : 1);
    EXPECT_TRUE(good);
    EXPECT_EQ(words[32], 1u);
  });
}

TEST_P(ForkTest, ToForkInATransactionIsAnError) {
  tests::with_variant(GetParam(), []<class Driver>() {
    const auto forks = [](auto&) { [[maybe_unused]] const pid_t child = fork(); };
    EXPECT_DEATH(Driver::update(forks), "fork\\(\\) inside a transaction");
    EXPECT_DEATH(Driver::read_only(forks), "fork\\(\\) inside a transaction");
  });
}

}  // namespace
}  // namespace loam::tm
