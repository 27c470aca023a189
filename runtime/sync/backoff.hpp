// Backoff: waiting that does not hurt the one waited for.
//   The first rounds pause the core for twice as long each time; later ones give it up, since the thread waited for may
//   not be running: an unbounded spin stalls as soon as threads outnumber cores.
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
