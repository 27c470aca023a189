// Flat nesting, exceptions, and bodies that restart.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace loam::tm {
namespace {

struct NestingTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, NestingTest, testing::ValuesIn(tests::variants()), tests::variant_name);

alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

void reset() { x = y = 0; }

TEST_P(NestingTest, AnInnerUpdateJoinsTheOuterOne) {
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& outer) {
      outer.write(x, std::uint64_t{1});
      const std::uint64_t inner_result = Driver::update([](auto& inner) {
        inner.write(y, inner.read(x) + 1);
        return inner.read(y);
      });
      EXPECT_EQ(inner_result, 2u);
      EXPECT_EQ(outer.read(y), 2u);
      std::uint64_t seen = 0;
      std::thread([&] { tests::attempt_update<Driver>(2, [&](auto& other) { seen = other.read(y); }); }).join();
      EXPECT_EQ(seen, 0u) << "the inner end is no commit";
    });
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 2u);
    EXPECT_EQ(statistics().commits, 1u);
  });
}

TEST_P(NestingTest, AnInnerReadOnlySeesTheOuterWrites) {
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& outer) {
      outer.write(x, std::uint64_t{5});
      EXPECT_EQ(Driver::read_only([](auto& inner) { return inner.read(x); }), 5u);
    });
    EXPECT_EQ(Driver::read_only([](auto& outer) {
                return outer.read(x) + Driver::read_only([](auto& inner) { return inner.read(x); });
              }),
              10u);
    EXPECT_EQ(statistics().commits, 2u);
  });
}

TEST_P(NestingTest, AnUpdateInsideAReadOnlyRestartsTheOuterOneInUpdateMode) {
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    unsigned outer_attempts = 0;
    Driver::read_only([&](auto& outer) {
      ++outer_attempts;
      const std::uint64_t before = outer.read(x);
      Driver::update([&](auto& inner) { inner.write(x, before + 1); });
      EXPECT_EQ(outer.read(x), before + 1);
    });
    EXPECT_GE(outer_attempts, 2u);
    EXPECT_LE(outer_attempts, kReadOnlyFailuresMax + 1);
    EXPECT_EQ(x, 1u);
    const Statistics counts = statistics();
    EXPECT_EQ(counts.commits, 1u);
    EXPECT_EQ(counts.aborts[static_cast<std::size_t>(AbortCause::explicit_)], outer_attempts - 1);
    EXPECT_EQ(counts.aborts_total(), outer_attempts - 1);
  });
}

TEST_P(NestingTest, AnInnerExceptionThatIsCaughtCancelsNothingOneThatLeavesCancelsAll) {
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& outer) {
      outer.write(x, std::uint64_t{1});
      try {
        Driver::update([](auto& inner) {
          inner.write(y, std::uint64_t{1});
          throw std::runtime_error("caught inside");
        });
      } catch (const std::runtime_error&) {
      }
    });
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 1u) << "flat: the inner transaction is part of the outer one";
    EXPECT_THROW(Driver::update([](auto& outer) {
                   outer.write(x, std::uint64_t{9});
                   Driver::update([](auto& inner) {
                     inner.write(y, std::uint64_t{9});
                     throw std::runtime_error("leaves");
                   });
                 }),
                 std::runtime_error);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(NestingTest, AnExceptionCarriesItsMessageOutOfReadOnlyAndUpdate) {
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    for (int round = 0; round < 3; ++round) {
      try {
        Driver::read_only([](auto& tx) { throw std::runtime_error("seen " + std::to_string(tx.read(x))); });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "seen 0");
      }
      // The thread is outside again: a transaction works and memory can be reclaimed.
      Driver::update([](auto& tx) { tx.destroy(tx.template create<std::uint64_t>(1u)); });
      EXPECT_EQ(quiesce(), 0u);
    }
  });
}

TEST_P(NestingTest, ABodyRestartsWithItsCallersLocalsIntact) {
  LOAM_NEEDS_POINTS();
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    volatile int seed = 3;
    int a = seed, b = seed * 2, c = seed * 3, d = seed * 4;
    long double e = seed;
    std::string text = "unchanged";
    for (int round = 0; round < 20; ++round) {
      const tests::ChangesOnce<Driver> change(x, static_cast<std::uint64_t>(round + 1));
      int attempts = 0;
      const std::uint64_t seen = Driver::update([&](auto& tx) {
        ++attempts;
        const std::uint64_t value = tx.read(x);
        tx.write(y, value);
        return value;
      });
      EXPECT_EQ(attempts, 2);
      EXPECT_EQ(seen, static_cast<std::uint64_t>(round + 1));
      a += 1, b += 2, c += 3, d += 4, e += 0.5L;
    }
    EXPECT_EQ(a, 23);
    EXPECT_EQ(b, 46);
    EXPECT_EQ(c, 69);
    EXPECT_EQ(d, 92);
    EXPECT_EQ(e, 13.0L);
    EXPECT_EQ(text, "unchanged");
  });
}

TEST_P(NestingTest, ReadOnlyTurnsToALogAfterItsFailures) {
  LOAM_NEEDS_POINTS();
  reset();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Each attempt meets a version newer than its snapshot. Without a log it must restart; with one it extends, where
    // the algorithm can: where it cannot, the first attempt with a log is the last one to meet such a version. Who
    // holds what it reads has no snapshot.
    using Algorithm = typename Driver::Uses;
    const unsigned failures = read_only_extends<Algorithm>() || readers_block_writers<Algorithm>()
                                  ? 0
                                  : kReadOnlyFailuresMax + !extends<Algorithm>();
    unsigned attempts = 0, changes = 0;
    const std::uint64_t seen = Driver::read_only([&](auto& tx) {
      ++attempts;
      const std::uint64_t before = tx.read(y);
      if (changes < kReadOnlyFailuresMax + 1) {
        ++changes;
        std::thread([] { Driver::update([](auto& other) { other.write(x, other.read(x) + 1); }); }).join();
      }
      return tx.read(x) + before;
    });
    EXPECT_EQ(attempts, failures + 1);
    EXPECT_EQ(seen, changes);
    const Statistics counts = statistics();
    EXPECT_EQ(counts.aborts_total(), failures);
    EXPECT_EQ(counts.histogram()[failures], 1u);
  });
}

}  // namespace
}  // namespace loam::tm
