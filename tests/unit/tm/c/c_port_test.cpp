// What a program that comes from another transactional memory asks for: restarts, early release, values of every type.
// Under every algorithm.
#include "include/loam/tm.h"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

namespace loam::tm {
namespace {

using tests::atomically;
using tests::closed;
using tests::in_c;

std::uint64_t explicit_aborts() {
  loam_statistics statistics;
  loam_statistics_of_thread(&statistics);
  for (unsigned cause = 0; loam_abort_cause_name(cause) != nullptr; ++cause)
    if (std::strcmp(loam_abort_cause_name(cause), "explicit") == 0) return statistics.aborts[cause];
  return ~std::uint64_t{0};
}

struct CPort : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, CPort, testing::ValuesIn(Algorithms::kNames), tests::test_name_of);

alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

TEST_P(CPort, RestartRunsTheTransactionAgainFromItsStart) {
  in_c(GetParam(), [] {
    for (const unsigned flags : {0u, LOAM_READ_ONLY}) {
      x = 0;
      int attempts = 0;
      EXPECT_EQ(atomically(
                    [&](loam_tx* tx) {
                      EXPECT_EQ(loam_tx_read_u64(tx, &x), 0u) << "what the attempt before wrote is gone";
                      const int now = ++attempts;
                      if (flags == 0) loam_tx_write_u64(tx, &x, 7);
                      if (now < 4) loam_tx_restart(tx);
                    },
                    flags),
                LOAM_COMMITTED);
      EXPECT_EQ(attempts, 4);
      EXPECT_EQ(x, flags == 0 ? 7u : 0u);
    }
    EXPECT_EQ(explicit_aborts(), 6u);
  });
}

TEST_P(CPort, ItEndsThePartsThatItStandsIn) {
  in_c(GetParam(), [] {
    x = y = 0;
    int attempts = 0;
    EXPECT_EQ(atomically([&](loam_tx* tx) {
                ++attempts;
                loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1);
                closed(tx, [&](loam_tx* part) {
                  loam_tx_write_u64(part, &y, loam_tx_read_u64(part, &y) + 1);
                  if (attempts < 3) loam_tx_restart(part);
                });
              }),
              LOAM_COMMITTED);
    EXPECT_EQ(attempts, 3);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(CPort, TheOpenFormBeginsAgain) {
  in_c(GetParam(), [] {
    x = 0;
    volatile int attempts = 0;
    loam_tx_frame frame;
    const int attempt = loam_tx_begin(&frame, 0);
    if (attempt != 0) {
      attempts = attempts + 1;
      EXPECT_EQ(attempt, attempts);
      loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
      if (attempts < 5) loam_tx_restart(frame.tx);
      loam_tx_commit(&frame);
    }
    EXPECT_EQ(attempts, 5);
    EXPECT_EQ(x, 1u);
  });
}

// After some restarts the transaction runs alone; if it restarts again, others have to come in between.
TEST_P(CPort, WhoRestartsUntilAnotherThreadHasDoneItsPartIsNotAloneForEver) {
  if (GetParam() == "sequential") GTEST_SKIP() << "it runs one thread";
  in_c(
      GetParam(),
      [] {
        x = 0;
        std::atomic<bool> begun{false};
        std::thread other([&] {
          while (!begun.load()) std::this_thread::yield();
          atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); });
        });
        EXPECT_EQ(atomically([&](loam_tx* tx) {
                    const bool done = loam_tx_read_u64(tx, &x) != 0;
                    begun.store(true);
                    if (!done) loam_tx_restart(tx);
                  }),
                  LOAM_COMMITTED);
        other.join();
      },
      3);
}

template <class T, class Write, class Read>
void goes_in_and_out(Write write, Read read, std::initializer_list<T> values) {
  alignas(8) T place{};
  for (const T value : values)
    atomically([&](loam_tx* tx) {
      write(tx, &place, value);
      const T found = read(tx, &place);
      EXPECT_EQ(std::memcmp(&found, &value, sizeof value), 0);
    });
  EXPECT_EQ(std::memcmp(&place, std::end(values) - 1, sizeof place), 0);
}

TEST_P(CPort, ValuesOfEveryTypeGoInAndOut) {
  in_c(GetParam(), [] {
    goes_in_and_out<std::int8_t>(loam_tx_write_i8, loam_tx_read_i8, {0, -1, INT8_MIN});
    goes_in_and_out<std::int16_t>(loam_tx_write_i16, loam_tx_read_i16, {0, -1, INT16_MIN});
    goes_in_and_out<std::int32_t>(loam_tx_write_i32, loam_tx_read_i32, {0, -1, INT32_MIN});
    goes_in_and_out<std::int64_t>(loam_tx_write_i64, loam_tx_read_i64, {0, -1, INT64_MIN});
    goes_in_and_out<float>(loam_tx_write_float, loam_tx_read_float,
                           {0, -0.5f, std::numeric_limits<float>::signaling_NaN()});
    goes_in_and_out<double>(loam_tx_write_double, loam_tx_read_double,
                            {0, 1e-310, std::numeric_limits<double>::infinity()});
    goes_in_and_out<std::size_t>(loam_tx_write_size, loam_tx_read_size, {0, SIZE_MAX});
    goes_in_and_out<std::uintptr_t>(loam_tx_write_uintptr, loam_tx_read_uintptr, {0, UINTPTR_MAX});
  });
}

// A later change of a read that was released is no conflict, where the algorithm keeps single reads.
TEST_P(CPort, AReleasedReadIsNoConflict) {
  in_c(GetParam(), [algorithm = GetParam()] {
    bool releases = false;
    Algorithms::with<false>(algorithm, [&]<class A>() { releases = Driver<A>::kReleasesReads; });
    if (!releases) return;
    x = y = 0;
    int attempts = 0;
    atomically([&](loam_tx* tx) {
      ++attempts;
      loam_tx_read_u64(tx, &x);
      loam_tx_release_read(tx, &x, sizeof x);
      if (attempts == 1)
        std::thread([] { atomically([](loam_tx* other) { loam_tx_write_u64(other, &x, 1); }); }).join();
      loam_tx_write_u64(tx, &y, 1);
    });
    EXPECT_EQ(attempts, 1);
  });
}

// By the time that a transaction returns which privatizes, one that ran beside it is over.
TEST_P(CPort, WhatIsPrivatizedIsReadByNobody) {
  if (GetParam() == "sequential") GTEST_SKIP() << "it runs one thread";
  in_c(GetParam(), [] {
    std::atomic<bool> inside{false}, over{false}, was_over{false};
    std::thread reader([&] {
      loam_tx_frame frame;
      if (loam_tx_begin(&frame, LOAM_READ_ONLY)) {
        inside = true;
        platform::sleep_ns(20'000'000);
        over = true;
        loam_tx_commit(&frame);
      }
    });
    while (!inside) platform::yield();
    atomically([](loam_tx* tx) { loam_tx_privatize(tx, &x); });
    was_over = over.load();
    reader.join();
    EXPECT_TRUE(was_over);
  });
}

TEST(CPortMisuse, OutsideOfATransactionEachSaysSo) {
  tests::in_child([] {
    loam_tx* stale = nullptr;
    atomically([&](loam_tx* tx) { stale = tx; });
    int local = 0;
    EXPECT_DEATH(loam_tx_restart(stale), "loam_tx_restart\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_keep(stale, &local, sizeof local), "loam_tx_keep\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_release_read(stale, &x, 8), "loam_tx_release_read\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_privatize(stale, &x), "loam_tx_privatize\\(\\) outside of transactions");
    EXPECT_DEATH(atomically([](loam_tx* tx) { loam_tx_restart(tx); }, LOAM_IRREVOCABLE), "irrevocable");
  });
}

}  // namespace
}  // namespace loam::tm
