// OwnedLock: a spin lock that stores its holder, so that the child of a fork finds the locks that no thread will
//   release. A fork copies the memory of a process and one of its threads. A lock that another thread held stays locked
//   in the child for ever; one that the forking thread itself held, in a function that a signal handler interrupted,
//   will be released when the handler returns. The word is the address of a variable of the holding thread, the same in
//   parent and child.
//   Cost one compare-and-swap.   When not: as SpinLock; and nothing that runs in a child but its first thread.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::sync {

class OwnedLock {
 public:
  void lock() noexcept {
    Backoff backoff;
    while (!try_lock()) {
      // relaxed: only decides when to try again; the compare-and-swap orders.
      do backoff.wait_among_many(this_thread());
      while (holder_.load(std::memory_order_relaxed) != kNobody);
    }
  }

  bool try_lock() noexcept {
    std::uintptr_t nobody = kNobody;
    // owned_lock.A: pairs with the release in unlock(); without it the section could read what an earlier holder
    // overwrote.
    return holder_.compare_exchange_strong(nobody, this_thread(), std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() noexcept { holder_.store(kNobody, std::memory_order_release); }  // owned_lock.A: the publishing side

  // The calling thread holds the lock from now on, whoever held it. Only where nobody can be holding it who goes on: the
  // holder's thread has ended, or no other thread knows the lock.
  // relaxed: nothing is read that a holder wrote, but what the caller knows to be complete.
  void take_over() noexcept { holder_.store(this_thread(), std::memory_order_relaxed); }

  // In the child of a fork, by its only thread: whether a thread holds the lock that is not in this process. What the
  // lock guards may be half changed; the caller mends it and unlocks.
  bool is_orphaned() const noexcept {
    // relaxed: one thread.
    const std::uintptr_t holder = holder_.load(std::memory_order_relaxed);
    return holder != kNobody && holder != this_thread();
  }

  // The same for every call of one thread, and for no other thread that lives.
  static std::uintptr_t this_thread() noexcept { return reinterpret_cast<std::uintptr_t>(&mark); }

 private:
  static constexpr std::uintptr_t kNobody = 0;
  static inline constinit thread_local std::byte mark{};

  std::atomic<std::uintptr_t> holder_{kNobody};
};

// The same on cache lines of its own: threads that wait look at it all the time, and would keep what lies beside it from
// its holder.
struct alignas(platform::kApartBytes) ApartOwnedLock : OwnedLock {};

}  // namespace loam::sync
