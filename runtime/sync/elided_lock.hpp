// ElidedLock: a lock whose sections run as hardware transactions where there are any, and one at a time where not.
//   A section that runs as a transaction reads the lock word, so a thread that takes the lock aborts it.
//   Cost      begin and commit of a transaction; after kTries aborts, or one that no retry helps, the lock.
//   When not  sections that enter the kernel: they abort each time.
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>
#include <cstdint>

namespace loam::sync {

class ElidedLock {
 public:
  static constexpr unsigned kTries = 8;
  static constexpr std::uint8_t kHeld = 1;  // the code with which a section ends that finds the lock held

  struct Counts {
    std::uint64_t sections, elided, aborts;
  };

  // Before threads start. elide: sections may be transactions; without it the lock is an ordinary one.
  constexpr explicit ElidedLock(bool elide = false) noexcept : elides_(elide) {}
  void elide(bool on) noexcept { elides_ = on; }
  bool elides() const noexcept { return elides_; }

  // Runs section(). It may be run several times, and what it does beside memory stays.
  template <class F>
  void run(F&& section) noexcept {
    if (elides_ && run_elided(section)) return;
    lock();
    section();
    unlock();
  }

  void lock() noexcept {
    Backoff backoff;
    // elided_lock.A: pairs with the release in unlock(); without it the section could read what an earlier owner
    // overwrote.
    while (held_.exchange(1, std::memory_order_acquire) != 0) {
      // relaxed: only decides when to try again; the exchange orders.
      while (held_.load(std::memory_order_relaxed) != 0) backoff.wait();
    }
    ++taken_;
  }
  bool try_lock() noexcept {
    if (held_.exchange(1, std::memory_order_acquire) != 0) return false;  // elided_lock.A
    ++taken_;
    return true;
  }
  void unlock() noexcept { held_.store(0, std::memory_order_release); }  // elided_lock.A: the publishing side
  // For who is in a transaction of its own and leaves it where this is true: whoever takes the lock later aborts it.
  // relaxed: the transaction orders
  bool held() const noexcept { return held_.load(std::memory_order_relaxed) != 0; }

  Counts counts() const noexcept {
    // relaxed: counts, which order nothing
    const std::uint64_t elided = elided_.load(std::memory_order_relaxed);
    return {taken_ + elided, elided, aborts_.load(std::memory_order_relaxed)};
  }

 private:
  template <class F>
  bool run_elided(F& section) noexcept {
    for (unsigned i = 0; i < kTries; ++i) {
      const unsigned status = platform::transaction_begin();
      if (status == platform::kTransactionStarted) {
        if (held()) platform::transaction_abort<kHeld>();
        section();
        platform::transaction_commit();
        elided_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
        return true;
      }
      aborts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
      const bool held = (status & platform::kAbortExplicit) != 0 && platform::explicit_code(status) == kHeld;
      if (!held && (status & (platform::kAbortRetry | platform::kAbortConflict)) == 0) return false;
      Backoff backoff;
      // relaxed: only decides when to try again
      while (held && held_.load(std::memory_order_relaxed) != 0) backoff.wait();
    }
    return false;
  }

  std::atomic<std::uint32_t> held_{0};
  bool elides_;
  std::uint64_t taken_ = 0;  // changed with the lock held
  std::atomic<std::uint64_t> elided_{0}, aborts_{0};
};

}  // namespace loam::sync
