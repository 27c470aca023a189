// Programs in C with inline accesses, which do what the calls do, in every mode, beside other threads, and hand over
// where they must not decide. (In parentheses, an access is the call.) A test that includes this file has defined
// LOAM_TM_ALGORITHM.
#pragma once

#include "include/loam/tm.h"
#include "runtime/base/random.hpp"
#include "runtime/sync/barrier.hpp"
#include "tests/harness/c_bodies.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using tests::atomically;
using tests::closed;

struct alignas(64) Words {
  std::uint64_t of[320] = {};
};
Words words;
alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

// A transaction of another thread, from begin to commit.
template <class Body>
void elsewhere(Body body) {
  std::thread([&] { ASSERT_EQ(atomically(body), LOAM_COMMITTED); }).join();
}

struct CInlined : testing::Test {
  // A transaction of another thread commits while an attempt of this one waits for it: so no commit waits for attempts.
  static void SetUpTestSuite() {
    loam_config config;
    loam_config_default(&config);
    config.privatization = "none";
    ASSERT_EQ(loam_configure(&config), LOAM_OK) << loam_error();
  }
};

TEST_F(CInlined, FixesTheAlgorithmBeforeMain) { EXPECT_STREQ(loam_algorithm_in_use(), LOAM_INLINED_ALGORITHM); }

TEST_F(CInlined, ValuesOfEverySizeGoInAndOut) {
  struct alignas(8) {
    std::uint64_t u64 = 0;
    std::uint32_t u32[2] = {};
    std::uint16_t u16[4] = {};
    std::uint8_t u8[8] = {};
    void* pointer = nullptr;
    double real = 0;
    std::int32_t negative = 0;
    std::int8_t tiny = 0;
  } values;
  for (const unsigned flags : {0u, LOAM_IRREVOCABLE}) {
    values = {};
    ASSERT_EQ(atomically(
                  [&](loam_tx* tx) {
                    loam_tx_write_u64(tx, &values.u64, 0x0123456789abcdef);
                    loam_tx_write_u32(tx, &values.u32[1], 0xfedcba98);
                    loam_tx_write_u16(tx, &values.u16[2], 0x7654);
                    loam_tx_write_u8(tx, &values.u8[7], 0x32);
                    loam_tx_write_ptr(tx, &values.pointer, &values);
                    loam_tx_write_double(tx, &values.real, -0.5);
                    loam_tx_write_i32(tx, &values.negative, -7);
                    loam_tx_write_i8(tx, &values.tiny, -1);
                    // As the transaction sees them.
                    EXPECT_EQ(loam_tx_read_u64(tx, &values.u64), 0x0123456789abcdefu);
                    EXPECT_EQ(loam_tx_read_u32(tx, &values.u32[1]), 0xfedcba98u);
                    EXPECT_EQ(loam_tx_read_u32(tx, &values.u32[0]), 0u);
                    EXPECT_EQ(loam_tx_read_u16(tx, &values.u16[2]), 0x7654u);
                    EXPECT_EQ(loam_tx_read_u8(tx, &values.u8[7]), 0x32u);
                    EXPECT_EQ(loam_tx_read_ptr(tx, &values.pointer), &values);
                  },
                  flags),
              LOAM_COMMITTED);
    EXPECT_EQ(values.u64, 0x0123456789abcdefu);
    EXPECT_EQ(values.u32[1], 0xfedcba98u);
    EXPECT_EQ(values.u16[2], 0x7654u);
    EXPECT_EQ(values.u8[7], 0x32u);
    EXPECT_EQ(values.u32[0] + values.u16[1] + values.u16[3] + values.u8[6] + values.u8[0], 0u) << "a neighbour";
    for (const unsigned reading : {0u, LOAM_READ_ONLY, LOAM_IRREVOCABLE})
      atomically(
          [&](loam_tx* tx) {
            EXPECT_EQ(loam_tx_read_u64(tx, &values.u64), 0x0123456789abcdefu);
            EXPECT_EQ(loam_tx_read_u32(tx, &values.u32[1]), 0xfedcba98u);
            EXPECT_EQ(loam_tx_read_u16(tx, &values.u16[2]), 0x7654u);
            EXPECT_EQ(loam_tx_read_u8(tx, &values.u8[7]), 0x32u);
            EXPECT_EQ(loam_tx_read_ptr(tx, &values.pointer), &values);
            EXPECT_EQ(loam_tx_read_double(tx, &values.real), -0.5);
            EXPECT_EQ(loam_tx_read_i32(tx, &values.negative), -7);
            EXPECT_EQ(loam_tx_read_i8(tx, &values.tiny), -1);
          },
          reading);
  }
}

// Parts of a word join; what lies beside them may be somebody else's, also while the commit writes.
TEST_F(CInlined, PartsOfAWordJoinAndLeaveTheRestAlone) {
  union {
    std::uint64_t word = 0;
    std::uint8_t bytes[8];
  } shared;
  shared.word = 0x1111111111111111;
  atomically([&](loam_tx* tx) {
    loam_tx_write_u8(tx, &shared.bytes[0], 0x22);
    loam_tx_write_u8(tx, &shared.bytes[3], 0x33);
    EXPECT_EQ(loam_tx_read_u8(tx, &shared.bytes[0]), 0x22);
    EXPECT_EQ(loam_tx_read_u8(tx, &shared.bytes[3]), 0x33);
    EXPECT_EQ(loam_tx_read_u64(tx, &shared.word), 0x1111111133111122u);
    shared.bytes[6] = 0x44;  // whoever else has a part of the word, plainly
  });
  EXPECT_EQ(shared.word, 0x1144111133111122u);
  // A write alone does not even look at the rest.
  atomically([&](loam_tx* tx) {
    loam_tx_write_u16(tx, &shared.bytes[2], 0x5566);
    shared.bytes[7] = 0x77;
  });
  EXPECT_EQ(shared.word, 0x7744111155661122u);
  // Parts of two words in turn, of which one is the last that was written; and a part that is taken back.
  words = {};
  auto* const halves = reinterpret_cast<loam_inlined_u32*>(words.of);
  atomically([&](loam_tx* tx) {
    loam_tx_write_u32(tx, &halves[0], 1);
    EXPECT_EQ(loam_tx_read_u32(tx, &halves[1]), 0u);
    loam_tx_write_u32(tx, &halves[2], 3);
    loam_tx_write_u32(tx, &halves[1], 2);
    loam_tx_write_u32(tx, &halves[3], 4);
    EXPECT_EQ(closed(tx,
                     [&](loam_tx* part) {
                       loam_tx_write_u32(part, &halves[2], 9);
                       loam_tx_cancel(part);
                     }),
              LOAM_CANCELLED);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(loam_tx_read_u32(tx, &halves[i]), i + 1);
    loam_tx_write_u32(tx, &halves[2], 5);
    EXPECT_EQ(loam_tx_read_u64(tx, &words.of[1]), 0x400000005u);
  });
  EXPECT_EQ(words.of[0], 0x200000001u);
  EXPECT_EQ(words.of[1], 0x400000005u);
  // In many words.
  atomically([&](loam_tx* tx) {
    for (unsigned i = 0; i < 64; ++i) loam_tx_write_u32(tx, &halves[i], loam_tx_read_u32(tx, &halves[i]) + 100 + i);
  });
  for (unsigned i = 4; i < 64; ++i) EXPECT_EQ(halves[i], 100 + i);
}

// Beyond the part of the write set that norec searches one by one, from where on a call adds entries; and several words
// for each record. One is added by a call in any case, which makes norec's index: an inline write after it must not
// leave its entry out.
TEST_F(CInlined, ManyWordsAreWrittenAndFound) {
  for (const unsigned count : {32u, 320u})
    for (unsigned round = 0; round < 3; ++round) {
      words = {};
      const auto value = [&](unsigned i) { return i % 3 == 0 ? 7 : i + 1000u * round; };
      atomically([&](loam_tx* tx) {
        for (unsigned i = 0; i < count / 2; ++i) loam_tx_write_u64(tx, &words.of[i], i + 1000u * round);
        (loam_tx_write_u64)(tx, &words.of[count / 2], count / 2 + 1000u * round);
        for (unsigned i = count / 2 + 1; i < count; ++i) loam_tx_write_u64(tx, &words.of[i], i + 1000u * round);
        for (unsigned i = 0; i < count; ++i) EXPECT_EQ(loam_tx_read_u64(tx, &words.of[i]), i + 1000u * round);
        for (unsigned i = 0; i < count; i += 3) loam_tx_write_u64(tx, &words.of[i], 7);
        for (unsigned i = 0; i < count; ++i) EXPECT_EQ(loam_tx_read_u64(tx, &words.of[i]), value(i));
        EXPECT_EQ(words.of[1], 0u) << "a write is seen before the commit";
      });
      for (unsigned i = 0; i < 320; ++i) EXPECT_EQ(words.of[i], i < count ? value(i) : 0u);
    }
}

// The value that was read first is gone: only an attempt that starts anew may see the second one.
TEST_F(CInlined, AChangeOfWhatWasReadIsSeenByTheNextRead) {
  for (const unsigned flags : {0u, LOAM_READ_ONLY}) {
    x = y = 1;
    int tries = 0;
    std::uint64_t first = 0, second = 0;
    atomically(
        [&](loam_tx* tx) {
          first = loam_tx_read_u64(tx, &x);
          if (++tries == 1)
            elsewhere([](loam_tx* other) {
              loam_tx_write_u64(other, &x, 2);
              loam_tx_write_u64(other, &y, 2);
            });
          second = loam_tx_read_u64(tx, &y);
          EXPECT_EQ(first, second) << "values of two snapshots";
        },
        flags);
    EXPECT_EQ(first + second, 4u);
    EXPECT_EQ(tries, 2);
  }
}

TEST_F(CInlined, AChangeOfAPartThatWasReadIsSeenByTheNextRead) {
  struct alignas(64) {
    std::uint32_t low = 1, high = 1;
    std::uint16_t shorts[4] = {1, 1, 1, 1};
    std::uint8_t bytes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  } parts;
  const auto change = [&](loam_tx* other) {
    loam_tx_write_u32(other, &parts.low, 2);
    loam_tx_write_u16(other, &parts.shorts[1], 2);
    loam_tx_write_u8(other, &parts.bytes[5], 2);
    loam_tx_write_u64(other, &x, 2);
  };
  const auto tries_of = [&](auto&& read) {
    parts = {};
    int tries = 0;
    atomically([&](loam_tx* tx) {
      read(tx);
      if (++tries == 1) elsewhere(change);
      loam_tx_read_u64(tx, &x);
    });
    return tries;
  };
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u32(tx, &parts.low); }), 2);
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u16(tx, &parts.shorts[1]); }), 2);
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u8(tx, &parts.bytes[5]); }), 2);
  // A part's neighbours are not a part of what was read, but have the same record.
  const int expected = std::string_view(LOAM_INLINED_ALGORITHM) == "norec" ? 1 : 2;
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u32(tx, &parts.high); }), expected);
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u16(tx, &parts.shorts[2]); }), expected);
  EXPECT_EQ(tries_of([&](loam_tx* tx) { loam_tx_read_u8(tx, &parts.bytes[4]); }), expected);
}

// The last read was inline: the commit has to compare it.
TEST_F(CInlined, AChangeBeforeTheCommitRunsTheUpdateAgain) {
  x = 1, y = 0;
  int tries = 0;
  atomically([&](loam_tx* tx) {
    const std::uint64_t read = loam_tx_read_u64(tx, &x);
    loam_tx_write_u64(tx, &y, read + 1);
    if (++tries == 1) elsewhere([](loam_tx* other) { loam_tx_write_u64(other, &x, 5); });
  });
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(y, 6u);
}

// A record may have changed between a read of a word and a write of its neighbour, which takes the record.
TEST_F(CInlined, AChangeBetweenAReadAndAWriteRunsTheUpdateAgain) {
  words = {};
  int tries = 0;
  atomically([&](loam_tx* tx) {
    const std::uint64_t read = loam_tx_read_u64(tx, &words.of[0]);
    if (++tries == 1) elsewhere([](loam_tx* other) { loam_tx_write_u64(other, &words.of[0], 5); });
    loam_tx_write_u64(tx, &words.of[1], read + 1);
    loam_tx_write_u64(tx, &words.of[0], read + 2);
  });
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(words.of[0], 7u);
  EXPECT_EQ(words.of[1], 6u);
}

// Two that each read both words and write one: the second to commit must see what the first wrote.
TEST_F(CInlined, NoTwoCommitsMissEachOther) {
  int wrong = 0;
  sync::Barrier barrier(2);
  const auto run = [&](std::uint64_t& own, bool judge) {
    for (int round = 0; round < 1000; ++round) {
      barrier.arrive_and_wait();
      atomically([&](loam_tx* tx) {
        if (loam_tx_read_u64(tx, &x) + loam_tx_read_u64(tx, &y) == 0) loam_tx_write_u64(tx, &own, 1);
      });
      barrier.arrive_and_wait();
      if (!judge) continue;
      wrong += x + y != 1;
      x = y = 0;
    }
  };
  x = y = 0;
  std::thread other([&] { run(y, false); });
  run(x, true);
  other.join();
  EXPECT_EQ(wrong, 0);
}

// What wakes a transaction is a change of what it has read, inline too.
TEST_F(CInlined, RetryWaitsForAChangeOfWhatWasRead) {
  for (const unsigned flags : {0u, LOAM_READ_ONLY}) {
    x = 0;
    std::atomic<int> tries{0};
    std::uint64_t seen = 0;
    std::thread waiter([&] {
      atomically(
          [&](loam_tx* tx) {
            ++tries;
            seen = loam_tx_read_u64(tx, &x);
            if (seen == 0) loam_tx_retry(tx);
          },
          flags);
      loam_thread_exit();
    });
    while (tries == 0) std::this_thread::yield();
    atomically([&](loam_tx* tx) { loam_tx_write_u64(tx, &x, 3); });
    waiter.join();
    EXPECT_EQ(seen, 3u);
  }
}

// A cancelled transaction gives back what it has locked and changes nothing.
TEST_F(CInlined, ACancelledTransactionLeavesNothing) {
  x = 1;
  words = {};
  EXPECT_EQ(atomically([&](loam_tx* tx) {
              loam_tx_write_u64(tx, &x, 9);
              for (std::uint64_t& word : words.of) loam_tx_write_u64(tx, &word, 9);
              loam_tx_cancel(tx);
            }),
            LOAM_CANCELLED);
  EXPECT_EQ(x + words.of[0] + words.of[319], 1u);
  elsewhere([&](loam_tx* tx) {
    loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1);
    for (std::uint64_t& word : words.of) loam_tx_write_u64(tx, &word, loam_tx_read_u64(tx, &word) + 1);
  });
  EXPECT_EQ(x, 2u);
  EXPECT_EQ(words.of[319], 1u);
}

// Who began before must still notice that the word has changed since.
TEST_F(CInlined, ACancelledWriteLeavesTheTimeAtWhichItsWordChanged) {
  for (const unsigned flags : {0u, LOAM_READ_ONLY}) {
    x = y = 0;
    int tries = 0;
    EXPECT_EQ(atomically(
                  [&](loam_tx* tx) {
                    const std::uint64_t before = loam_tx_read_u64(tx, &x);
                    if (++tries == 1) {
                      elsewhere([](loam_tx* other) {
                        loam_tx_write_u64(other, &x, 1);
                        loam_tx_write_u64(other, &y, 1);
                      });
                      std::thread([] {
                        EXPECT_EQ(atomically([](loam_tx* other) {
                                    loam_tx_write_u64(other, &y, 9);
                                    loam_tx_cancel(other);
                                  }),
                                  LOAM_CANCELLED);
                      }).join();
                    }
                    EXPECT_EQ(loam_tx_read_u64(tx, &y), before);
                  },
                  flags),
              LOAM_COMMITTED);
    EXPECT_EQ(tries, 2);
  }
}

TEST_F(CInlined, AReadOnlyTransactionThatWritesBecomesAnUpdate) {
  x = 1;
  int tries = 0;
  EXPECT_EQ(atomically(
                [&](loam_tx* tx) {
                  ++tries;
                  loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1);
                },
                LOAM_READ_ONLY),
            LOAM_COMMITTED);
  // Under dctl the first attempt may only find the clock behind.
  EXPECT_GE(tries, 2);
  EXPECT_EQ(x, 2u);
}

TEST_F(CInlined, APartThatIsTakenBackTakesItsWritesBack) {
  x = 1, y = 2;
  words = {};
  atomically([&](loam_tx* tx) {
    loam_tx_write_u64(tx, &x, 10);
    EXPECT_EQ(closed(tx,
                     [&](loam_tx* part) {
                       loam_tx_write_u64(part, &x, 11);
                       loam_tx_write_u64(part, &y, 12);
                       for (unsigned i = 0; i < 12; ++i) loam_tx_write_u64(part, &words.of[i], 1);
                       EXPECT_EQ(loam_tx_read_u64(part, &y), 12u);
                       loam_tx_cancel(part);
                     }),
              LOAM_CANCELLED);
    EXPECT_EQ(loam_tx_read_u64(tx, &x), 10u);
    EXPECT_EQ(loam_tx_read_u64(tx, &y), 2u);
    loam_tx_write_u64(tx, &words.of[3], 5);
    EXPECT_EQ(closed(tx, [&](loam_tx* part) { loam_tx_write_u64(part, &words.of[4], 6); }), LOAM_COMMITTED);
  });
  EXPECT_EQ(x, 10u);
  EXPECT_EQ(y, 2u);
  EXPECT_EQ(words.of[2] + words.of[3] + words.of[4], 11u);
}

TEST_F(CInlined, TheOpenFormHasThemToo) {
  x = 0;
  loam_tx_frame frame;
  volatile int tries = 0;
  if (loam_tx_begin(&frame, 0)) {
    tries = tries + 1;
    loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
    if (tries < 3) loam_tx_restart(frame.tx);
    loam_tx_commit(&frame);
  }
  EXPECT_EQ(x, 1u);
  EXPECT_EQ(tries, 3);
}

// Transfers between accounts of every size, some by calls, while others add all up.
TEST_F(CInlined, ThreadsLoseNothing) {
  struct alignas(8) Account {
    std::uint64_t wide = 1000;
    std::uint32_t half[2] = {1000, 1000};
    std::uint16_t quarter[4] = {1000, 1000, 1000, 1000};
  };
  static std::vector<Account> accounts(4);
  const auto sum = [](loam_tx* tx) {
    std::uint64_t all = 0;
    for (const Account& each : accounts) {
      all += loam_tx_read_u64(tx, &each.wide);
      for (const auto& part : each.half) all += loam_tx_read_u32(tx, &part);
      for (const auto& part : each.quarter) all += loam_tx_read_u16(tx, &part);
    }
    return all;
  };
  const std::uint64_t expected = accounts.size() * 7 * 1000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      base::Random random(1, t);
      for (int i = 0; i < 20000; ++i) {
        Account &from = accounts[random.below(4)], &to = accounts[random.below(4)];
        const unsigned part = random.below(2), kind = random.below(4);
        atomically([&](loam_tx* tx) {
          if (kind == 3) {
            EXPECT_EQ(sum(tx), expected);
          } else if (kind == 0) {
            loam_tx_write_u64(tx, &from.wide, loam_tx_read_u64(tx, &from.wide) - 1);
            loam_tx_write_u32(tx, &to.half[part], loam_tx_read_u32(tx, &to.half[part]) + 1);
          } else if (kind == 1) {
            (loam_tx_write_u32)(tx, &from.half[part], (loam_tx_read_u32)(tx, &from.half[part]) - 1);
            loam_tx_write_u16(tx, &to.quarter[part],
                              static_cast<std::uint16_t>((loam_tx_read_u16)(tx, &to.quarter[part]) + 1));
          } else {
            loam_tx_write_u16(tx, &from.quarter[part],
                              static_cast<std::uint16_t>(loam_tx_read_u16(tx, &from.quarter[part]) - 1));
            (loam_tx_write_u64)(tx, &to.wide, loam_tx_read_u64(tx, &to.wide) + 1);
          }
        });
      }
      loam_thread_exit();
    });
  for (std::thread& thread : threads) thread.join();
  atomically([&](loam_tx* tx) { EXPECT_EQ(sum(tx), expected); }, LOAM_READ_ONLY);
}

}  // namespace
}  // namespace loam::tm
