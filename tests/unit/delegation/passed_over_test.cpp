// The lock mcs while some of its waiting threads sleep: it goes to those that are awake, and nobody sleeps for ever.
#include "runtime/delegation/schemes/mcs.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <thread>
#include <vector>

namespace loam::delegation {
namespace {

// A policy by thread: some sleep whenever they wait, the others never do.
class ByThread {
 public:
  static constexpr bool kSleeps = true;
  inline static thread_local bool sleeps = false;
  // Threads that wait now; of those that sleep, once they are marked as asleep.
  inline static std::atomic<int> waiting{0};

  explicit ByThread(const WaitingSettings&) noexcept : awake_({.spin_ns = WaitingSettings::kNeverSleep}) {}

  std::uint32_t wait(Cell& cell, std::uint32_t state) const noexcept {
    if (sleeps) cell.sleeping.store(1, std::memory_order_relaxed);  // relaxed: published by the count
    ++waiting;
    std::uint32_t found = state;
    if (sleeps) {
      // acquire: waiting.A
      while ((found = cell.state.load(std::memory_order_acquire)) == state) sleep_on(cell.state, cell.sleeping, state);
    } else {
      // acquire: waiting.A
      while ((found = cell.state.load(std::memory_order_acquire)) == state) platform::yield();
    }
    --waiting;
    return found;
  }
  void tell(Cell& cell, std::uint32_t state) const noexcept { awake_.tell(cell, state); }
  void pause() const noexcept { awake_.pause(); }
  std::uint32_t looks() const noexcept { return awake_.looks(); }

 private:
  SpinThenSleep awake_;
};
static_assert(Waiting<ByThread>);

using Lock = Mcs<ByThread>;

// A thread that does one operation, in the queue when this returns; under the lock.
template <class Operation>
std::thread queued(Lock& lock, bool sleeps, Operation operation) {
  const int before = ByThread::waiting;
  std::thread thread([&lock, sleeps, operation] {
    ByThread::sleeps = sleeps;
    lock.apply(operation);
  });
  while (ByThread::waiting == before) std::this_thread::yield();
  return thread;
}

TEST(PassedOver, SleepersComeAfterThoseThatAreAwakeInTheirOrder) {
  Lock lock;
  std::vector<int> order;
  std::vector<std::thread> threads;
  lock.apply([&] {
    for (const int number : {1, 2, 3, 4, 5, 6})
      threads.push_back(queued(lock, number % 2 != 0, [&order, number] { order.push_back(number); }));
  });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector{2, 4, 6, 1, 3, 5}));
}

TEST(PassedOver, ASleeperThatIsAloneIsCalled) {
  Lock lock;
  int done = 0;
  for (int round = 0; round < 100; ++round) {
    std::thread thread;
    lock.apply([&] { thread = queued(lock, true, [&done] { ++done; }); });
    thread.join();
    lock.apply([&done] { ++done; });
  }
  EXPECT_EQ(done, 200);
}

// The queue is never empty: each of two threads lets the lock go only while the other one waits for it.
TEST(PassedOver, ASleeperIsServedThoughOthersNeverLeaveTheQueueEmpty) {
  Lock lock;
  std::atomic<bool> served{false};
  unsigned long changes = 0;  // under the lock
  std::vector<std::thread> threads;
  const auto busy = [&] {
    while (!served)
      lock.apply([&] {
        ++changes;
        while (ByThread::waiting < 2 && !served) std::this_thread::yield();
      });
  };
  lock.apply([&] {
    threads.push_back(queued(lock, true, [&served] { served = true; }));
    threads.emplace_back(busy);
    threads.emplace_back(busy);
    while (ByThread::waiting < 3) std::this_thread::yield();
  });
  for (auto& thread : threads) thread.join();
  EXPECT_GE(changes, PassedOver::kChangesMax - 1) << "it was passed over";
}

}  // namespace
}  // namespace loam::delegation
