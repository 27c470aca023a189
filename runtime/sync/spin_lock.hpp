// SpinLock: a test-and-test-and-set lock for short sections that must not allocate, on Backoff.
//   Cost one exchange.   When not: sections that may block, or many waiters: it is not fair.
#pragma once

#include "runtime/sync/backoff.hpp"

#include <atomic>

namespace loam::sync {

class SpinLock {
 public:
  void lock() noexcept {
    Backoff backoff;
    // spin_lock.A: pairs with the release in unlock(); without it the section could read what an earlier owner
    // overwrote.
    while (held_.exchange(true, std::memory_order_acquire)) {
      // relaxed: only decides when to try again; the exchange orders.
      while (held_.load(std::memory_order_relaxed)) backoff.wait();
    }
  }

  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }  // spin_lock.A

  void unlock() noexcept { held_.store(false, std::memory_order_release); }  // spin_lock.A: the publishing side

 private:
  std::atomic<bool> held_{false};
};

}  // namespace loam::sync
