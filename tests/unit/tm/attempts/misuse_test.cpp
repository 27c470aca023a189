// What a program must not do, and what it is told then.
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace loam::tm {
namespace {

struct MisuseTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, MisuseTest, testing::ValuesIn(tests::variants({"table"})), tests::variant_name);

alignas(64) Word x = 0;
std::jmp_buf somewhere;

template <class Driver>
[[gnu::noinline]] void begins_and_jumps() {
  Driver::update([](auto& tx) {
    tx.write(x, Word{1});
    std::longjmp(somewhere, 1);
  });
}

// Uses the stack where the abandoned body was, and below.
template <class Driver>
[[gnu::noinline]] void begins_deeper(int depth) {
  volatile char room[512];
  for (volatile char& byte : room) byte = 1;
  if (depth == 0)
    Driver::update([](auto& tx) { tx.write(x, Word{2}); });
  else
    begins_deeper<Driver>(depth - 1);
  room[0] = 2;
}

TEST_P(MisuseTest, ALongjmpOutOfABodyIsNoticedAtTheNextBegin) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(
        {
          if (setjmp(somewhere) == 0) begins_and_jumps<Driver>();
          Driver::update([](auto& tx) { tx.write(x, Word{2}); });
        },
        "it was left by longjmp");
#ifndef LOAM_INSTRUMENTED  // their frames are so large that this one spares the place by which the abandoned body is
                           // told
    EXPECT_DEATH(
        {
          if (setjmp(somewhere) == 0) begins_and_jumps<Driver>();
          Driver::read_only([](auto& tx) { return tx.read(x); });
        },
        "it was left by longjmp");
#endif
  });
}

#ifndef LOAM_INSTRUMENTED  // only the stack pointer is known there
TEST_P(MisuseTest, ALongjmpIsNoticedAlsoFromDeeperInTheStack) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(
        {
          if (setjmp(somewhere) == 0) begins_and_jumps<Driver>();
          begins_deeper<Driver>(8);
        },
        "it was left by longjmp");
  });
}
#endif

TEST_P(MisuseTest, ALongjmpWithinABodyIsFine) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      volatile int jumps = 0;
      if (setjmp(somewhere) == 0) {
        jumps = jumps + 1;
        std::longjmp(somewhere, 1);
      }
      Driver::update([](auto& inner) { inner.write(x, Word{3}); });
      EXPECT_EQ(tx.read(x), 3u);
    });
    EXPECT_EQ(x, 3u);
  });
}

TEST_P(MisuseTest, NestingFromDeepInTheStackIsFine) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      begins_deeper<Driver>(50);
      EXPECT_TRUE(Driver::closed([](auto&) { begins_deeper<Driver>(3); }));
      EXPECT_EQ(tx.read(x), 2u);
    });
    Driver::irrevocable([](auto&) { begins_deeper<Driver>(3); });
    EXPECT_EQ(x, 2u);
  });
}

#ifdef LOAM_CHECKED
TEST_P(MisuseTest, ATransactionInASignalHandlerThatInterruptedOneIsNoticed) {
  tests::with_variant(GetParam(), []<class Driver>() {
    const auto install = [] {
      std::signal(SIGUSR1, [](int) { Driver::update([](auto& tx) { tx.write(x, tx.read(x) + 1); }); });
    };
    EXPECT_DEATH(
        {
          install();
          Driver::update([](auto& tx) {
            tx.write(x, Word{1});
            std::raise(SIGUSR1);
          });
        },
        "a signal handler begins a transaction inside the one that the signal interrupted");
    EXPECT_DEATH(
        {
          install();
          Driver::irrevocable([](auto&) { std::raise(SIGUSR1); });
        },
        "a signal handler begins a transaction inside the one that the signal interrupted");
  });
}

TEST_P(MisuseTest, WithinOneSignalHandlerTransactionsMayNest) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // Nothing was interrupted, so this is only bad taste.
    std::signal(SIGUSR1,
                [](int) { Driver::update([](auto&) { Driver::update([](auto& tx) { tx.write(x, Word{9}); }); }); });
    std::raise(SIGUSR1);
    EXPECT_EQ(x, 9u);
  });
}
#endif

TEST_P(MisuseTest, ToExitInATransactionIsAnErrorUnlessItIsIrrevocable) {
  tests::with_variant(GetParam(), []<class Driver>() {
    const auto exits = [](auto& tx) {
      tx.write(x, Word{1});
      std::exit(3);
    };
    EXPECT_DEATH(Driver::update(exits), "exit\\(\\) inside a transaction");
    EXPECT_EXIT(Driver::irrevocable(exits), testing::ExitedWithCode(3), "");
  });
}

TEST_P(MisuseTest, CallsOutsideOfTransactionsAreErrors) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(Driver::cancel(), "cancel\\(\\) outside of transactions");
    EXPECT_DEATH(Driver::closed([](auto&) {}), "closed\\(\\) or or_else\\(\\) outside of transactions");
    EXPECT_DEATH(Driver::release_read(&x, sizeof x), "release_read\\(\\) outside of transactions");
    EXPECT_DEATH(Driver::or_else([](auto&) {}, [](auto&) {}), "closed\\(\\) or or_else\\(\\) outside of transactions");
    EXPECT_DEATH(Driver::wait_for_change(), "retry\\(\\) outside of transactions");
    const auto by_a_thread_that_has_had_one = [] {
      Driver::update([](auto& tx) { tx.write(x, Word{1}); });
      Driver::cancel();
    };
    EXPECT_DEATH(by_a_thread_that_has_had_one(), "cancel\\(\\) outside of transactions");
    const auto released_behind_its_end = [] {
      Driver::update([](auto& tx) { tx.write(x, Word{1}); });
      Driver::release_read(&x, sizeof x);
    };
    EXPECT_DEATH(released_behind_its_end(), "release_read\\(\\) outside of transactions");
    const auto part_behind_its_end = [] {
      Driver::update([](auto& tx) { tx.write(x, Word{1}); });
      Driver::closed([](auto&) {});
    };
    EXPECT_DEATH(part_behind_its_end(), "closed\\(\\) or or_else\\(\\) outside of transactions");
    EXPECT_DEATH(Driver::update([](auto&) { thread_exit(); }), "inside a transaction");
  });
}

}  // namespace
}  // namespace loam::tm
