// The C interface under every algorithm: both forms of transactions and what is inside them.
#include "include/loam/tm.h"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

// Configures the process through the C interface and runs body() in it.
template <class Body>
void in_c(std::string_view algorithm, const Body& body, const char* privatization = "none") {
  tests::in_child([&] {
    loam_config config;
    loam_config_default(&config);
    const std::string name(algorithm);
    config.algorithm = name.c_str();
    config.privatization = privatization;
    ASSERT_EQ(loam_configure(&config), LOAM_OK) << loam_error();
    body();
  });
}

using tests::atomically;
using tests::closed;

struct CApi : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, CApi, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           const char* const only = std::getenv("LOAM_ALGORITHM");
                           for (const std::string_view name : Algorithms::kNames)
                             if (only == nullptr || name == only) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& info) {
                           std::string name(info.param);
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

const AlgorithmDescription& description_of(std::string_view algorithm) {
  return *std::find_if(Algorithms::kDescriptions.begin(), Algorithms::kDescriptions.end(),
                       [&](const auto& each) { return each.name == algorithm; });
}

// As many threads as the algorithm runs, at most `wanted`.
unsigned threads_under(std::string_view algorithm, unsigned wanted) {
  return std::min(wanted, description_of(algorithm).threads_max);
}

TEST_P(CApi, ValuesOfEverySizeGoInAndOutAndTouchNothingBeside) {
  in_c(GetParam(), [] {
    alignas(16) unsigned char bytes[64];
    for (const unsigned flags : {0u, LOAM_IRREVOCABLE}) {
      std::memset(bytes, 0xee, sizeof bytes);
      atomically(
          [&](loam_tx* tx) {
            loam_tx_write_u8(tx, bytes + 3, 0x12);
            loam_tx_write_u16(tx, bytes + 6, 0x3456);
            loam_tx_write_u32(tx, bytes + 12, 0x789abcde);
            loam_tx_write_u64(tx, bytes + 16, 0x0123456789abcdef);
            loam_tx_write_ptr(tx, bytes + 24, bytes);
            loam_tx_write_bytes(tx, bytes + 33, "a line that is long", 19);
            EXPECT_EQ(loam_tx_read_u8(tx, bytes + 3), 0x12);
            EXPECT_EQ(loam_tx_read_u16(tx, bytes + 6), 0x3456);
            EXPECT_EQ(loam_tx_read_u32(tx, bytes + 12), 0x789abcdeu);
            EXPECT_EQ(loam_tx_read_u64(tx, bytes + 16), 0x0123456789abcdefu);
            EXPECT_EQ(loam_tx_read_ptr(tx, bytes + 24), bytes);
          },
          flags);
      unsigned char expected[64];
      std::memset(expected, 0xee, sizeof expected);
      expected[3] = 0x12;
      const std::uint16_t two = 0x3456;
      const std::uint32_t four = 0x789abcde;
      const std::uint64_t eight = 0x0123456789abcdef;
      const void* const pointer = bytes;
      std::memcpy(expected + 6, &two, 2);
      std::memcpy(expected + 12, &four, 4);
      std::memcpy(expected + 16, &eight, 8);
      std::memcpy(expected + 24, &pointer, 8);
      std::memcpy(expected + 33, "a line that is long", 19);
      EXPECT_EQ(std::memcmp(bytes, expected, sizeof bytes), 0);
    }
    for (std::size_t from = 0; from < 9; ++from)
      for (std::size_t count = 0; count < 20; ++count) {
        char read[24];
        std::memset(read, '-', sizeof read);
        atomically([&](loam_tx* tx) { loam_tx_read_bytes(tx, read, bytes + 32 + from, count); }, LOAM_READ_ONLY);
        EXPECT_EQ(std::memcmp(read, bytes + 32 + from, count), 0);
        EXPECT_EQ(read[count], '-');
      }
  });
}

[[gnu::noinline]] void add_in_open_form(unsigned flags) {
  loam_tx_frame frame;
  if (!loam_tx_begin(&frame, flags)) return;
  loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
  loam_tx_commit(&frame);
}

// y = x, in the open form, and alone in the end if so wanted. returns how often begin has returned
[[gnu::noinline]] int copy_x_to_y(bool becomes_irrevocable) {
  volatile int returns = 0;
  loam_tx_frame frame;
  const int attempt = loam_tx_begin(&frame, 0);
  returns = returns + 1;
  EXPECT_EQ(attempt, returns);
  loam_tx_write_u64(frame.tx, &y, loam_tx_read_u64(frame.tx, &x));
  if (becomes_irrevocable) loam_tx_become_irrevocable(frame.tx);
  loam_tx_commit(&frame);
  return returns;
}

TEST_P(CApi, AnAttemptThatAbortsBeginsAgainWithTheCallersRegisters) {
  LOAM_NEEDS_POINTS();
  in_c(GetParam(), [algorithm = GetParam()] {
    Algorithms::with<false>(algorithm, []<class A>() {
      // Where one attempt is let in at a time no other one makes it abort; it can still ask for another try itself.
      constexpr bool kOverlaps = A::kDescription.overlaps;
      x = y = 0;
      volatile std::uint64_t seed = 3;
      // More live values across begin than there are registers that a call keeps.
      std::uint64_t a = seed, b = seed * 2, c = seed * 3, d = seed * 4, e = seed * 5, f = seed * 6, g = seed * 7;
      double h = static_cast<double>(seed);
      for (std::uint64_t round = 1; round <= 20; ++round) {
        std::optional<tests::ChangesOnce<Driver<A>>> change;
        if constexpr (kOverlaps)
          change.emplace(x, round);
        else
          x = round;
        const int returns = copy_x_to_y(!kOverlaps);
        EXPECT_EQ(returns, 2);
        EXPECT_EQ(y, round);
        EXPECT_EQ(change && change->reached(), kOverlaps);
        a += 1, b += 2, c += 3, d += 4, e += 5, f += 6, g += 7, h += 0.5;
      }
      EXPECT_EQ(a, 23u);
      EXPECT_EQ(b, 46u);
      EXPECT_EQ(c, 69u);
      EXPECT_EQ(d, 92u);
      EXPECT_EQ(e, 115u);
      EXPECT_EQ(f, 138u);
      EXPECT_EQ(g, 161u);
      EXPECT_EQ(h, 13.0);
    });
  });
}

TEST_P(CApi, BothFormsLoseNoUpdate) {
  in_c(GetParam(), [count = threads_under(GetParam(), 3)] {
    x = 0;
    constexpr unsigned kRounds = 2000;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; ++t)
      threads.emplace_back([t] {
        for (unsigned round = 0; round < kRounds; ++round) {
          if (round % 2 == t % 2) {
            add_in_open_form(round % 8 == 0 ? LOAM_READ_ONLY : 0);
          } else {
            atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1); },
                       round % 64 == 1 ? LOAM_IRREVOCABLE : 0);
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(x, std::uint64_t{count} * kRounds);
    loam_statistics all;
    loam_statistics_of_process(&all);
    EXPECT_EQ(all.commits, std::uint64_t{count} * kRounds);
  });
}

TEST_P(CApi, CancelTakesTheWholeBackWithoutAnException) {
  in_c(GetParam(), [] {
    x = 1;
    EXPECT_EQ(atomically([](loam_tx* tx) {
                loam_tx_write_u64(tx, &x, 2);
                loam_tx_cancel(tx);
              }),
              LOAM_CANCELLED);
    EXPECT_EQ(x, 1u);
    volatile int ran = 0;
    loam_tx_frame frame;
    if (loam_tx_begin(&frame, 0)) {
      ran = ran + 1;
      loam_tx_write_u64(frame.tx, &x, 2);
      // From a nested one, too: nesting is flat.
      loam_tx_frame inner;
      if (loam_tx_begin(&inner, 0)) loam_tx_cancel(inner.tx);
      ADD_FAILURE() << "cancel() returned";
    }
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(loam_tx_current(), nullptr);
    EXPECT_EQ(atomically([](loam_tx* tx) { loam_tx_cancel(tx); }, LOAM_READ_ONLY), LOAM_CANCELLED);
    // The thread is outside again.
    EXPECT_EQ(atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 5); }), LOAM_COMMITTED);
    EXPECT_EQ(x, 5u);
  });
}

TEST_P(CApi, APartIsTakenBackByItself) {
  in_c(GetParam(), [] {
    x = y = 0;
    EXPECT_EQ(atomically([](loam_tx* tx) {
                loam_tx_write_u64(tx, &x, 1);
                EXPECT_EQ(closed(tx,
                                 [](loam_tx* part) {
                                   loam_tx_write_u64(part, &x, 2);
                                   loam_tx_write_u64(part, &y, 2);
                                   loam_tx_frame frame;
                                   if (loam_tx_begin(&frame, 0)) loam_tx_cancel(part);
                                 }),
                          LOAM_CANCELLED);
                EXPECT_EQ(loam_tx_read_u64(tx, &x), 1u);
                EXPECT_EQ(closed(tx, [](loam_tx* part) { loam_tx_write_u64(part, &y, 3); }), LOAM_COMMITTED);
              }),
              LOAM_COMMITTED);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 3u);
  });
}

TEST_P(CApi, RetrySleepsUntilAChange) {
  if (threads_under(GetParam(), 2) < 2) GTEST_SKIP() << "no other thread could change anything";
  in_c(GetParam(), [] {
    x = 0;
    std::thread writer([] {
      platform::sleep_ns(5'000'000);
      atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 7); });
    });
    loam_tx_frame frame;
    if (loam_tx_begin(&frame, LOAM_READ_ONLY)) {
      if (loam_tx_read_u64(frame.tx, &x) == 0) loam_tx_retry(frame.tx);
      EXPECT_EQ(loam_tx_read_u64(frame.tx, &x), 7u);
      loam_tx_commit(&frame);
    }
    writer.join();
  });
}

TEST_P(CApi, OrElseTriesTheOtherAfterARetry) {
  in_c(GetParam(), [] {
    x = 7;
    y = 0;
    atomically([](loam_tx* tx) {
      loam_tx_or_else(
          tx,
          [](loam_tx* first, void*) {
            loam_tx_write_u64(first, &x, 8);
            loam_tx_retry(first);
          },
          [](loam_tx* second, void*) { loam_tx_write_u64(second, &y, 9); }, nullptr);
    });
    EXPECT_EQ(x, 7u);
    EXPECT_EQ(y, 9u);
  });
}

TEST_P(CApi, MemoryAndHandlersFollowTheOutcome) {
  in_c(GetParam(), [] {
    static std::string told;
    told.clear();
    static const auto tell = [](void* what) { told += static_cast<const char*>(what); };
    void* block = nullptr;
    atomically([&](loam_tx* tx) {
      loam_tx_on_commit(tx, tell, const_cast<char*>("commit "));
      loam_tx_on_abort(tx, tell, const_cast<char*>("abort "));
      block = loam_tx_malloc(tx, 100);
      ASSERT_NE(block, nullptr);
    });
    EXPECT_EQ(told, "commit ");
    EXPECT_EQ(atomically([&](loam_tx* tx) {
                loam_tx_on_abort(
                    tx,
                    [](void*) {
                      // After the fact: outside of the transaction that was cancelled.
                      EXPECT_EQ(loam_tx_current(), nullptr);
                      told += "abort ";
                      loam_tx_frame frame;
                      if (loam_tx_begin(&frame, 0)) loam_tx_commit(&frame);
                    },
                    nullptr);
                loam_tx_free(tx, block);
                EXPECT_NE(loam_tx_malloc(tx, 100), nullptr);
                loam_tx_cancel(tx);
              }),
              LOAM_CANCELLED);
    EXPECT_EQ(told, "commit abort ");
    atomically([&](loam_tx* tx) { loam_tx_free(tx, block); });
    EXPECT_EQ(loam_quiesce(), 0u);
    loam_statistics s;
    loam_statistics_of_thread(&s);
    EXPECT_EQ(s.blocks_allocated, s.blocks_freed);
    EXPECT_EQ(s.blocks_allocated, 2u);
    std::uint64_t aborts = 0;
    for (const std::uint64_t count : s.aborts) aborts += count;
    EXPECT_EQ(s.attempts, s.commits + aborts);
    EXPECT_EQ(aborts, 1u);
#ifndef LOAM_TSAN  // whose malloc ends the program instead
    // More than there is.
    atomically([](loam_tx* tx) { EXPECT_EQ(loam_tx_malloc(tx, ~std::size_t{0} / 4), nullptr); });
#endif
  });
}

TEST_P(CApi, IrrevocableRunsOnceAndOneThatBecomesSoRunsAgainAlone) {
  in_c(GetParam(), [threads = threads_under(GetParam(), 2)] {
    x = 0;
    volatile int returns = 0;
    loam_tx_frame frame;
    if (loam_tx_begin(&frame, 0)) {
      returns = returns + 1;
      loam_tx_write_u64(frame.tx, &x, 1);
      loam_tx_become_irrevocable(frame.tx);
      EXPECT_EQ(x, returns == 2 ? 1u : 0u) << "alone, writes are plain";
      loam_tx_commit(&frame);
    }
    EXPECT_EQ(returns, 2);
    int runs = 0;
    EXPECT_EQ(atomically([&](loam_tx* tx) { ++runs, loam_tx_write_u64(tx, &x, 2); }, LOAM_IRREVOCABLE), LOAM_COMMITTED);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(x, 2u);
    // The gate is open again, to another thread if there may be one.
    const auto add = [] { atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1); }); };
    if (threads == 1)
      add();
    else
      std::thread(add).join();
    EXPECT_EQ(x, 3u);
  });
}

TEST_P(CApi, ABodyInCppMayThrow) {
  in_c(GetParam(), [] {
    x = 0;
    EXPECT_THROW(atomically([](loam_tx* tx) {
                   loam_tx_write_u64(tx, &x, 1);
                   throw std::runtime_error("out");
                 }),
                 std::runtime_error);
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(loam_tx_current(), nullptr);
    EXPECT_THROW(atomically(
                     [](loam_tx* tx) {
                       loam_tx_write_u64(tx, &x, 1);
                       throw std::runtime_error("out");
                     },
                     LOAM_IRREVOCABLE),
                 std::runtime_error);
    EXPECT_EQ(x, 1u) << "alone nothing is taken back";
    EXPECT_EQ(atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 4); }), LOAM_COMMITTED);
  });
}

TEST_P(CApi, CppAndCNestInEachOther) {
  in_c(GetParam(), [algorithm = GetParam()] {
    x = y = 0;
    Algorithms::with<false>(algorithm, [&]<class A>() {
      using D = Driver<A>;
      D::update([&](auto& tx) {
        tx.write(x, std::uint64_t{1});
        loam_tx_frame frame;
        if (loam_tx_begin(&frame, 0)) {
          EXPECT_EQ(frame.tx, loam_tx_current());
          EXPECT_EQ(loam_tx_read_u64(frame.tx, &x), 1u);
          loam_tx_write_u64(frame.tx, &y, 2);
          loam_tx_commit(&frame);
        }
        EXPECT_EQ(tx.read(y), 2u);
        if constexpr (!writes_in_place<A>()) {
          EXPECT_EQ(y, 0u) << "the inner end is no commit";
        }
      });
      EXPECT_EQ(y, 2u);
      EXPECT_THROW(D::update([&](auto&) {
                     loam_tx_frame frame;
                     if (loam_tx_begin(&frame, 0)) {
                       loam_tx_write_u64(frame.tx, &y, 5);
                       loam_tx_commit(&frame);
                     }
                     D::cancel();
                   }),
                   Cancelled);
      EXPECT_EQ(y, 2u) << "the inner end is no commit";
      EXPECT_THROW(D::update([&](auto& tx) {
                     tx.write(x, std::uint64_t{9});
                     loam_tx_cancel(loam_tx_current());
                   }),
                   Cancelled);
      EXPECT_EQ(x, 1u);
      EXPECT_EQ(atomically([](loam_tx*) {
                  D::update([](auto& tx) { tx.write(x, std::uint64_t{3}); });
                  EXPECT_FALSE(D::closed([](auto& tx) {
                    tx.write(x, std::uint64_t{4});
                    D::cancel();
                  }));
                }),
                LOAM_COMMITTED);
      EXPECT_EQ(x, 3u);
    });
  });
}

}  // namespace
}  // namespace loam::tm
