// Memory that transactions allocate and free follows their outcome (docs/internals/itm.md, T10).
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>

namespace loam::tests {
extern std::atomic<long> blocks;
}

namespace {

using loam::tests::blocks;

long* kept;

[[gnu::noinline]] void news_and_cancels(bool cancel) {
  __transaction_atomic {
    long* const block = new long(5);
    kept = block;
    if (cancel) __transaction_cancel;
  }
}

TEST(T10, ABlockOfACancelledTransactionIsFreed) {
  kept = nullptr;
  const long before = blocks;
  for (int i = 0; i < 100; ++i) news_and_cancels(true);
  EXPECT_EQ(blocks, before);
  EXPECT_EQ(kept, nullptr);
  news_and_cancels(false);
  EXPECT_EQ(blocks, before + 1);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, 5);
  delete kept;
}

[[gnu::noinline]] void deletes_and_cancels(bool cancel) {
  __transaction_atomic {
    delete kept;
    if (cancel) __transaction_cancel;
    kept = nullptr;
  }
}

TEST(T10, ADeleteOfACancelledTransactionDidNotHappen) {
  kept = new long(5);
  const long before = blocks;
  deletes_and_cancels(true);
  EXPECT_EQ(blocks, before);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, 5);
  deletes_and_cancels(false);
  EXPECT_EQ(kept, nullptr);
}

}  // namespace
