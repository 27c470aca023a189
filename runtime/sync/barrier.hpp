// Barrier: n threads wait for each other, again and again.
//   A waiter spins with pauses, then yields: threads may outnumber cores (an unbounded spin would stall there).
//   Cost  one fetch-add per arrival, one line that all waiters read.
//   When not: waits of milliseconds, where a sleeping wait is kinder to others.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstdint>

namespace loam::sync {

class Barrier {
 public:
  explicit Barrier(std::uint32_t parties) noexcept : parties_(parties) {}
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Returns once all parties have called it as often as the caller. What they wrote before is visible after.
  void arrive_and_wait() noexcept {
    // relaxed: this round cannot end before the caller arrives, so it reads the current round.
    const auto round = round_.load(std::memory_order_relaxed);
    // barrier.A (gathers): acq_rel makes each arrival see the earlier ones, so that the last sees, and passes on, all.
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
      arrived_.store(0, std::memory_order_relaxed);        // relaxed: published by barrier.B to whoever arrives next
      round_.store(round + 1, std::memory_order_release);  // barrier.B (opens): pairs with the load below
      return;
    }
    // barrier.B: without acquire a thread could go on and miss what another wrote before it arrived.
    for (unsigned spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
      spins < kSpinsMax ? platform::pause() : platform::yield();
  }

 private:
  static constexpr unsigned kSpinsMax = 256;  // some microseconds: longer than the wake-up skew of running threads

  const std::uint32_t parties_;
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> arrived_{0};
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> round_{0};
};

}  // namespace loam::sync
