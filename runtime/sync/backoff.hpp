// Backoff: waiting that does not slow down the thread for which it waits.
//   The first rounds pause the core for twice as long each time; later ones yield it, because the other thread may not
//   be running: an unbounded spin stalls as soon as there are more threads than cores.
#pragma once

#include "runtime/platform/machine.hpp"

namespace loam::sync {

class Backoff {
 public:
  void wait() noexcept {
    if (round_ < kSpinRounds) {
      for (unsigned i = 0; i < (1u << round_); ++i) platform::pause();
      ++round_;
    } else {
      platform::yield();
    }
  }

  void reset() noexcept { round_ = 0; }

 private:
  // 2^7 - 1 pauses in all, a few microseconds: about what giving up the core and getting it back costs.
  static constexpr unsigned kSpinRounds = 7;

  unsigned round_ = 0;
};

}  // namespace loam::sync
