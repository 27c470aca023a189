// Backoff: waiting that does not slow down the thread for which it waits.
//   The first rounds pause the core for twice as long each time; later ones yield it, because the other thread may not
//   be running: an unbounded spin stalls as soon as there are more threads than cores.
#pragma once

#include "runtime/platform/machine.hpp"

#include <cstdint>

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

  // The same where many may wait for one line. who: differs from waiter to waiter
  // A waiter that gives up its core for nobody is back at once, and each look takes the line from its holder. So it
  // pauses, too. Waiters that look in step can keep one of them away for ever; so each pauses for another time.
  // Measured on 64 simulated cores (sim:many-128, larson for 4 ms): 42 s of simulation in place of more than ten minutes.
  void wait_among_many(std::uintptr_t who) noexcept {
    if (round_ == kSpinRounds) platform::yield();
    const unsigned pauses = 1u << round_;
    for (unsigned i = pauses + static_cast<unsigned>(who >> kWhoShift) % pauses; i != 0; --i) platform::pause();
    if (round_ < kSpinRounds) ++round_;
  }

  void reset() noexcept { round_ = 0; }

 private:
  // 2^7 - 1 pauses in all, a few microseconds: about what giving up the core and getting it back costs.
  static constexpr unsigned kSpinRounds = 7;
  static constexpr unsigned kWhoShift = 12;  // variables of threads lie whole pages apart

  unsigned round_ = 0;
};

}  // namespace loam::sync
