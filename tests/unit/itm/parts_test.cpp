// Parts: transactions inside another one that can be cancelled by themselves. What lies behind one that has ended is
// still undone with those around it.
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <cstdlib>

namespace {

long steps, never;

SAFE void changes_behind_a_part(long* block, bool cancel) {
  __transaction_atomic {
    steps = 2;
    __transaction_atomic {
      steps = 3;
      if (never != 0) __transaction_cancel;
    }
    *block = 9;
    if (cancel) __transaction_cancel;
  }
}

[[gnu::noinline]] long block_behind_a_part(bool cancel) {
  long seen = 0;
  __transaction_atomic {
    long* const block = static_cast<long*>(std::malloc(sizeof(long)));
    *block = 1;
    changes_behind_a_part(block, cancel);
    seen = *block;
    std::free(block);
  }
  return seen;
}

TEST(Parts, ABlockThatChangedBehindAnInnerPartGoesBack) {
  EXPECT_EQ(block_behind_a_part(true), 1);
  EXPECT_EQ(block_behind_a_part(false), 9);
}

// A local that changes behind an inner part, in three levels.
[[gnu::noinline]] long local_behind_a_part(int cancelled) {
  long local = 1;
  __transaction_atomic {
    steps = 1;
    __transaction_atomic {
      steps = 2;
      __transaction_atomic {
        steps = 3;
        local += 10;
        if (cancelled == 3) __transaction_cancel;
      }
      for (long i = 0; i < steps; ++i) local += 100;
      if (cancelled == 2) __transaction_cancel;
    }
    local += 1000 * steps;
    if (cancelled == 1) __transaction_cancel;
  }
  return local;
}

TEST(Parts, ALocalGoesBackWithTheLevelThatIsCancelled) {
  EXPECT_EQ(local_behind_a_part(0), 1 + 10 + 300 + 3000);
  EXPECT_EQ(local_behind_a_part(3), 1 + 200 + 2000);
  EXPECT_EQ(local_behind_a_part(2), 1 + 1000);
  EXPECT_EQ(local_behind_a_part(1), 1);
}

}  // namespace
