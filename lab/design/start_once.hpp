// StartOnce: what the first call of a process has to do, done once; others wait for it.
//   Not a static local: the C++ library's guard would be called, and these libraries are linked without that library.
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
    // start_once.A: acquire, with the release below: who finds it ready finds what start() has made.
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
