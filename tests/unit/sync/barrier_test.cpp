#include "runtime/sync/barrier.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace loam::sync {
namespace {

// Plain, not atomic: the barrier alone must order the accesses (the thread sanitizer watches).
void rounds(unsigned parties, int count) {
  Barrier barrier(parties);
  std::vector<int> progress(parties, 0);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < parties; ++i)
    threads.emplace_back([&, i] {
      for (int round = 1; round <= count; ++round) {
        progress[i] = round;
        barrier.arrive_and_wait();
        for (const int other : progress) ASSERT_EQ(other, round);
        barrier.arrive_and_wait();
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(Barrier, OnePartyDoesNotWait) { rounds(1, 1000); }
TEST(Barrier, NobodyPassesBeforeAllHaveArrived) { rounds(2, 2000); }
TEST(Barrier, ThreadsMayOutnumberCores) { rounds(16, 100); }

}  // namespace
}  // namespace loam::sync
