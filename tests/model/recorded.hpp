// Histories of calls that threads make at the same time on one object, recorded and checked.
#pragma once

#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/barrier.hpp"
#include "tests/model/linearizability.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::model {

inline constexpr unsigned kHistoryThreads = 3, kHistoryCalls = 6;
#ifdef LOAM_INSTRUMENTED
inline constexpr int kHistoryRounds = 15;
#else
inline constexpr int kHistoryRounds = 60;
#endif

// So many calls must have overlapped another one, or the histories test nothing.
inline constexpr std::size_t kHistoryOverlaps = std::size_t{kHistoryRounds} * kHistoryThreads;
// Whether a test goes on: on a busy machine threads often run one after the other, and it takes more rounds to overlap,
// in which threads sleep oftener and longer.
inline bool goes_on(int round, std::size_t overlapped) {
  return round < kHistoryRounds || (overlapped <= kHistoryOverlaps && round < 20 * kHistoryRounds);
}

struct Stalls {
  unsigned one_in;  // so many of the places that a thread comes by
  std::uint32_t ns;
};
constexpr Stalls stalls_of(int round) {
  if (round < kHistoryRounds) return {6, 20'000};
  if (round < 2 * kHistoryRounds) return {2, 200'000};
  return {1, 2'000'000};  // whoever holds up the others sleeps so long in each operation: they come meanwhile
}
// Of the round that runs. relaxed: threads of servers may read those of the round before.
inline std::atomic<Stalls> stalls{stalls_of(0)};

// Now and then a thread sleeps where it hurts, so that the others come by. A hook for test points.
inline thread_local constinit std::uint64_t stalls_drawn = 0;
inline void stall(const char*) {
  const Stalls now = stalls.load(std::memory_order_relaxed);
  if (base::Random(static_cast<std::uint64_t>(::pthread_self()), ++stalls_drawn).below(now.one_in) == 0)
    platform::sleep_ns(now.ns);
}

// draw(random, thread, i): the operation and argument of a thread's next call;   call(operation, argument): its result;
// end(): at the end of each thread.   returns how many calls overlapped another one
template <class Model, class Draw, class Call, class End>
std::size_t expect_linearizable(int round, Draw&& draw, Call&& call, End&& end) {
  stalls.store(stalls_of(round), std::memory_order_relaxed);
  CallClock clock;
  sync::Barrier start(kHistoryThreads);
  std::array<std::vector<CallRecord>, kHistoryThreads> records;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kHistoryThreads; ++t)
    threads.emplace_back([&, t] {
      base::Random random(static_cast<std::uint64_t>(round), t);
      start.arrive_and_wait();
      for (unsigned i = 0; i < kHistoryCalls; ++i) {
        CallRecord record = draw(random, t, i);
        record.began = clock.tick();
        record.result = call(record.operation, record.argument);
        record.ended = clock.tick();
        records[t].push_back(record);
      }
      end();
    });
  for (auto& thread : threads) thread.join();
  std::vector<CallRecord> all;
  for (const auto& some : records) all.insert(all.end(), some.begin(), some.end());
  EXPECT_TRUE(Linearizability<Model>(all).holds()) << "round " << round;
  return overlapping(all);
}

// Each value occurs once.
template <class Model>
CallRecord draw_call(base::Random& random, unsigned thread, unsigned i) {
  return {static_cast<int>(random.below(Model::kOperations)), 100 * (std::int64_t{thread} + 1) + i, 0, 0, 0};
}

}  // namespace loam::model
