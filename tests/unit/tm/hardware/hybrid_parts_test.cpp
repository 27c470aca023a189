// The parts of a hardware attempt (hybrid.hpp), called where no attempt runs: so they are tested on every machine.
#include "runtime/platform/machine.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/hardware/hybrid.hpp"
#include "runtime/tm/tm.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdint>
#include <thread>

namespace loam::tm::hardware {
namespace {

std::uint64_t x = 0;

// All transactions of a process are of one algorithm: the hybrid's software ones are norec's.
using Software = Driver<Norec<false>>;

// Alone: while one runs that cannot be undone, and one that ordinary attempts have given up. Nobody else may begin.
TEST(HybridParts, AnAttemptWaitsForATransactionThatRunsAlone) {
  EXPECT_FALSE(Hybrid::must_wait());
  std::atomic<bool> inside{false}, checked{false};
  std::thread other([&] {
    Software::irrevocable([&](auto&) {
      inside = true;
      while (!checked) platform::yield();
    });
  });
  while (!inside) platform::yield();
  EXPECT_TRUE(Hybrid::must_wait());
  checked = true;
  other.join();
  EXPECT_FALSE(Hybrid::must_wait());
}

TEST(HybridParts, AnAttemptWaitsForASoftwareCommit) {
  norec_sequence.now.fetch_add(1);
  EXPECT_TRUE(Hybrid::must_wait());
  norec_sequence.now.fetch_add(1);
  EXPECT_FALSE(Hybrid::must_wait());
}

TEST(HybridParts, ACommitThatWroteWakesWhoWaitsForAChange) {
  x = 0;
  Software::update([](auto&) {});  // for a descriptor
  Descriptor& d = Descriptor::current();
  std::thread waiter([] {
    const auto body = [](auto tx) {
      if (tx.read(x) == 0) Software::wait_for_change();
    };
    Hybrid::in_software<true>(body);
  });
  for (std::uint64_t round = 1; round <= 2; ++round) {
    while (shared.sleepers.load() == 0) platform::yield();
    if (round == 1) {
      // A commit that only read has nothing to tell.
      Hybrid::committed(d, false);
      EXPECT_NE(shared.sleepers.load(), 0u);
      continue;
    }
    std::atomic_ref(x).store(1);
    const bool told = Hybrid::tell();
    EXPECT_TRUE(told);
    Hybrid::committed(d, told);
    EXPECT_EQ(shared.sleepers.load(), 0u);
  }
  waiting::wake_all();  // the test ends, also if nobody woke the waiter
  waiter.join();
}

}  // namespace
}  // namespace loam::tm::hardware
