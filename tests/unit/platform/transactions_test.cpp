// Hardware transactions of this processor, through the seam. Where it has none that work, a begin says so.
#include "runtime/platform/machine.hpp"

#include "tests/harness/instrumented.hpp"

#include <gtest/gtest.h>
#include <atomic>

namespace loam::platform {
namespace {

// An interrupt may abort any attempt; a hundred in a row are something else.
constexpr int kTries = 100;

class Transactions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tests::kInstrumented) GTEST_SKIP() << "the sanitizer's calls abort every transaction";
    if (rtm_status() != RtmStatus::works) GTEST_SKIP() << "this processor has no hardware transactions that work";
  }
};

TEST_F(Transactions, ACommitKeepsWhatWasWritten) {
  std::atomic<int> value{0};
  bool committed = false;
  for (int i = 0; i < kTries && !committed; ++i) {
    if (transaction_begin() != kTransactionStarted) continue;
    value.store(7, std::memory_order_relaxed);
    transaction_commit();
    committed = true;
  }
  EXPECT_TRUE(committed);
  EXPECT_EQ(value.load(), 7);
}

TEST_F(Transactions, AnExplicitAbortPutsBackAndTellsItsCode) {
  std::atomic<int> value{3};
  unsigned code = 0;
  for (int i = 0; i < kTries && code == 0; ++i) {
    const unsigned status = transaction_begin();
    if (status == kTransactionStarted) {
      value.store(9, std::memory_order_relaxed);
      transaction_abort<42>();
    }
    if ((status & kAbortExplicit) != 0) code = explicit_code(status);
  }
  EXPECT_EQ(code, 42u);
  EXPECT_EQ(value.load(), 3);
  EXPECT_FALSE(in_transaction());
}

}  // namespace
}  // namespace loam::platform
