// Commit and abort handlers: when, in which order, how often, and what they may do.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace loam::tm {
namespace {

struct HandlersTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, HandlersTest, testing::ValuesIn(tests::variants({"table", "small_table"})),
                         tests::variant_name);

alignas(1024) Word words[64];
Word& x = words[0];
Word& y = words[16];
Word& z = words[32];

template <class Driver>
void add_one(Word& word) {
  Driver::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
}

std::string trace;

TEST_P(HandlersTest, CommitHandlersRunInOrderAfterTheCommit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    trace.clear();
    Driver::update([](auto& tx) {
      tx.on_commit([] { trace += 'a' + static_cast<char>(x); });
      tx.on_abort([] { trace += '!'; });
      tx.write(x, Word{1});
      Driver::update([](auto& inner) { inner.on_commit([] { trace += 'c'; }); });
      tx.on_commit([] { trace += Descriptor::current().mode == Mode::idle ? 'd' : '?'; });
      EXPECT_TRUE(trace.empty());
    });
    EXPECT_EQ(trace, "bcd");
  });
}

TEST_P(HandlersTest, TheyMayRunTransactionsWithHandlersOfTheirOwn) {
  tests::in_variant(GetParam(), []<class Driver>() {
    trace.clear();
    Driver::update([](auto& tx) {
      tx.on_commit([] {
        trace += 'a';
        Driver::update([](auto& inner) {
          inner.write(y, inner.read(x) + 1);
          inner.on_commit([] { trace += 'b'; });
        });
        EXPECT_EQ(Driver::read_only([](auto& inner) { return inner.read(y); }), 6u);
      });
      tx.on_commit([] { trace += 'c'; });
      tx.write(x, Word{5});
    });
    EXPECT_EQ(trace, "abc");
    EXPECT_EQ(y, 6u);
    Driver::update([](auto& tx) { tx.write(z, Word{1}); });
    EXPECT_EQ(trace, "abc") << "called once";
  });
}

TEST_P(HandlersTest, AbortHandlersRunForEachAbortedAttemptAndMayRunTransactions) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    trace.clear();
    int attempts = 0;
    long local = 5;
    // Where nobody can change what an attempt has read, it meets somebody who is writing that.
    constexpr bool kBefore = readers_block_writers<typename Driver::Uses>();
    std::optional<tests::ChangesOnce<Driver>> change;
    Driver::update([&](auto& tx) {
      const char name = static_cast<char>('0' + attempts);
      const bool disturb = attempts++ < 2;
      tx.on_abort([name] {
        trace += name;
        EXPECT_EQ(Descriptor::current_or_detached().part, nullptr);
        // More than the aborted attempt has read and written, so that nothing of it is left in the logs.
        Driver::update([](auto& own) {
          for (Word& word : words)
            if (&word != &x) own.write(word, own.read(word) + 1);
          own.on_abort([] { trace += '?'; });
          own.on_commit([] { trace += '+'; });
        });
      });
      tx.on_commit([] { trace += 'c'; });
      if (disturb && kBefore) change.emplace(x, x + 1);
      const Word seen = disturb && kBefore ? 0 : tx.read(x);
      Driver::closed([&](auto& part) {
        part.write(words[8], seen);
        if (disturb && !kBefore) std::thread([] { add_one<Driver>(x); }).join();
        part.write(x, seen + 10);
      });
    });
    EXPECT_EQ(attempts, 3);
    EXPECT_EQ(trace, "0+1+c");
    EXPECT_EQ(x, 12u);
    EXPECT_EQ(y, 2u);
    EXPECT_EQ(local, 5);
  });
}

TEST_P(HandlersTest, AnExceptionAndACancelAreAborts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    trace.clear();
    const auto body = [](bool thrown) {
      return [thrown](auto& tx) {
        tx.on_commit([] { trace += 'c'; });
        tx.on_abort([] {
          trace += 'a';
          add_one<Driver>(z);
        });
        tx.write(x, Word{1});
        if (thrown) throw std::runtime_error("thrown");
        Driver::cancel();
      };
    };
    try {
      Driver::update(body(true));
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "thrown");
      EXPECT_EQ(trace, "a");
    }
    EXPECT_THROW(Driver::update(body(false)), Cancelled);
    EXPECT_EQ(trace, "aa");
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(z, 2u);
  });
}

TEST_P(HandlersTest, AHandlerThatThrowsEndsTheProgramWithItsMessage) {
  tests::with_variant(GetParam(), []<class Driver>() {
    EXPECT_DEATH(Driver::update([](auto& tx) { tx.on_commit([] { throw std::runtime_error("out of paper"); }); }),
                 "a handler threw an exception \\(out of paper\\)");
    EXPECT_DEATH(Driver::update([](auto& tx) {
                   tx.on_abort([] { throw 5; });
                   Driver::cancel();
                 }),
                 "a handler threw an exception; the transaction is over");
  });
}

TEST_P(HandlersTest, ManyAreKept) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int calls;
    calls = 0;
    Driver::update([](auto& tx) {
      for (int i = 0; i < 10000; ++i) tx.on_commit([i] { calls += calls == i; });
    });
    EXPECT_EQ(calls, 10000);
    // One too many is an error that names the log.
    EXPECT_DEATH(Driver::update([](auto& tx) {
                   for (;;) tx.on_commit([] {});
                 }),
                 "filled its log of handlers \\(65536 entries\\)");
  });
}

// A handler holds at most kArgumentBytes: more is a compile-time error, which tests/lab compiles for.
static_assert(Handler::kArgumentBytes == 48);
TEST_P(HandlersTest, AHandlerHoldsFortyEightBytes) {
  tests::in_variant(GetParam(), []<class Driver>() {
    struct Load {
      Word parts[6];
    };
    const Load load{{1, 2, 3, 4, 5, 6}};
    static Word sum;
    sum = 0;
    Driver::update([&](auto& tx) {
      tx.on_commit([load] {
        for (const Word part : load.parts) sum += part;
      });
    });
    EXPECT_EQ(sum, 21u);
  });
}

}  // namespace
}  // namespace loam::tm
