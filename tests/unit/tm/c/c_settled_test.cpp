// What is left of a transaction of the open form once it has ended, as settled_test asks of bodies: it is counted by its
// aborts, and the next one starts afresh.
#include "runtime/tm/tm.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace loam::tm {
namespace {

using tests::atomically;

alignas(64) std::uint64_t x = 0;

// The commits of this thread by the aborts before them, as far as they are not 0: (least number of aborts, commits).
using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Counts counts() {
  const auto all = statistics().histogram();
  Counts found;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != 0) found.emplace_back(kAbortsBounds[i], all[i]);
  return found;
}

void expect_afresh() {
  const Contention& own = Descriptor::current().contention;
  EXPECT_EQ(own.stalls, 0u);
  EXPECT_EQ(own.earned, 0u);
  EXPECT_EQ(own.priority.load(), 0u);
  EXPECT_EQ(own.record, nullptr);
}

struct COpen : testing::Test {
  static constexpr const char* kAlgorithm = "etl-wb";
};

TEST_F(COpen, ACommitIsCountedByTheAbortsBeforeIt) {
  for (const std::uint64_t failures : {0, 1, 2, 3})
    tests::in_c(kAlgorithm, [failures] {
      const volatile std::uint64_t restarts = failures;
      volatile std::uint64_t attempts = 0;
      loam_tx_frame frame;
      if (loam_tx_begin(&frame, 0)) {
        attempts = attempts + 1;
        loam_tx_write_u64(frame.tx, &x, 1);
        if (attempts <= restarts) loam_tx_restart(frame.tx);
        loam_tx_commit(&frame);
      }
      EXPECT_EQ(attempts, failures + 1);
      EXPECT_EQ(counts(), (Counts{{failures, 1}}));
      expect_afresh();
    });
}

// Waits once, for a change that comes when the attempt has been rolled back; then it is cancelled or commits.
void waits_once(bool then_cancels) {
  const volatile bool cancels = then_cancels;
  x = 0;
  const tests::Interpose change("tm.aborted", 0, [] { atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); }); });
  loam_tx_frame frame;
  if (loam_tx_begin(&frame, 0)) {
    if (loam_tx_read_u64(frame.tx, &x) == 0) loam_tx_retry(frame.tx);
    EXPECT_EQ(Descriptor::current().contention.stalls, 1u) << "no abort of a conflict";
    if (cancels) loam_tx_cancel(frame.tx);
    loam_tx_commit(&frame);
  }
}

TEST_F(COpen, AWaitIsCountedAndExcusesNothingLater) {
  LOAM_NEEDS_POINTS();
  for (const bool cancels : {false, true})
    tests::in_c(
        kAlgorithm,
        [cancels] {
          waits_once(cancels);
          expect_afresh();
          EXPECT_EQ(counts(), cancels ? Counts{} : (Counts{{1, 1}}));
        },
        4);
}

// One that restarts while it runs alone waits for another thread to do its part, so the next attempt is as any other.
TEST_F(COpen, WhoRestartsAfterItBecameIrrevocableIsNotAlone) {
  tests::in_c(kAlgorithm, [] {
    volatile int attempts = 0;
    loam_tx_frame frame;
    if (loam_tx_begin(&frame, 0)) {
      attempts = attempts + 1;
      const Mode mode = Descriptor::current().mode;
      if (attempts == 1) loam_tx_become_irrevocable(frame.tx);
      EXPECT_EQ(mode == Mode::serial, attempts == 2) << "attempt " << attempts;
      if (attempts == 2) loam_tx_restart(frame.tx);
      loam_tx_commit(&frame);
    }
    EXPECT_EQ(attempts, 3);
    expect_afresh();
  });
}

}  // namespace
}  // namespace loam::tm
