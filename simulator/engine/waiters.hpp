// Queues of threads, by the address for which they wait. Mutexes, conditions, futexes and the like have their state
// here, not in libc's own types.
#pragma once

#include "simulator/engine/scheduler.hpp"

#include <cstdint>

namespace loam::simulator {

struct Waiters {
  Thread* owner = nullptr;  // of a lock
  unsigned count = 0;       // recursion of a lock, readers of a read-write lock, arrivals at a barrier
  unsigned limit = 0;       // threads of a barrier
  Thread* first = nullptr;

  bool empty() const noexcept { return first == nullptr; }
};

// The queue at an address, made at first use.
Waiters& waiters_at(const void* address);
// The object at this address is gone.
void forget_waiters(const void* address) noexcept;

// The current thread waits in the queue until it is woken, or until that time. what: for messages
// returns false if the time came first
bool wait_in(Waiters& queue, const void* address, const char* what, std::uint64_t until = kNever);
// Wakes the one that has waited longest; returns null if nobody waits.
Thread* wake_one(Waiters& queue);
unsigned wake_all(Waiters& queue, unsigned at_most = ~0U);

}  // namespace loam::simulator
