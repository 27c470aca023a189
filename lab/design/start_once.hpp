// StartOnce: runs a function once in a process, at the first call that needs it. Other threads wait until it has run.
//   Why not a local static: its guard calls the C++ library, and these libraries are linked without it.
#pragma once

#include "runtime/sync/backoff.hpp"

#include <atomic>
#include <cstdint>

namespace loam::design {

class StartOnce {
 public:
  // Returns when start() has returned, here or in another thread. start() must not call ensure().
  template <class Start>
  void ensure(Start start) noexcept {
    if (phase_.load(std::memory_order_acquire) == Phase::ready) return;  // start_once.A
    Phase expected = Phase::before;
    // start_once.A: a thread that acquires `ready` sees what start() wrote before the release below.
    if (phase_.compare_exchange_strong(expected, Phase::starting, std::memory_order_acquire)) {
      start();
      phase_.store(Phase::ready, std::memory_order_release);  // start_once.A
      return;
    }
    sync::Backoff backoff;
    while (phase_.load(std::memory_order_acquire) != Phase::ready) backoff.wait();  // start_once.A
  }

 private:
  enum class Phase : std::uint32_t { before, starting, ready };

  std::atomic<Phase> phase_{Phase::before};
};

}  // namespace loam::design
