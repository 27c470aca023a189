// schedule: who runs between two test points.
//   TokenSchedule  one thread at a time; at each point the holder of the token may hand it to another, as the seed
//   says.
//                  The same seed gives the same interleaving: a failure can be repeated.
//   stall()        threads run freely, and at each point one may be held up for a moment. Real parallelism, not
//   repeatable. What neither sees: orders that the processor or the compiler could make and this one does not.
#pragma once

#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstdint>

namespace loam::tests {

class TokenSchedule {
 public:
  // Before the threads of a run start. switch_percent: chance of a hand-over at a point.
  void start(unsigned threads, std::uint64_t seed, unsigned switch_percent) {
    random_ = base::Random(seed, 1000);
    switch_percent_ = switch_percent;
    live_ = (1u << threads) - 1;
    pass_to(pick());
  }

  // The thread's first and last call. Between them it runs only while it holds the token.
  void enter(unsigned self) { wait_for(self); }
  void leave(unsigned self) {
    live_ &= ~(1u << self);
    if (live_ != 0) pass_to(pick());
  }

  void point(unsigned self) {
    if (random_.below(100) >= switch_percent_) return;
    const unsigned next = pick();
    if (next == self) return;
    pass_to(next);
    wait_for(self);
  }

 private:
  // random_ and live_ belong to the holder of the token.
  unsigned pick() {
    for (;;) {
      const unsigned candidate = random_.below(32);
      if (live_ & (1u << (candidate % 4))) return candidate % 4;
    }
  }
  void pass_to(unsigned next) {
    turn_.store(next, std::memory_order_release);
    platform::futex_wake(turn_, 8);
  }
  void wait_for(unsigned self) {
    for (;;) {
      const std::uint32_t now = turn_.load(std::memory_order_acquire);
      if (now == self) return;
      platform::futex_wait(turn_, now);
    }
  }

  base::Random random_{0};
  unsigned switch_percent_ = 50;
  unsigned live_ = 0;
  std::atomic<std::uint32_t> turn_{0};
};

// Holds the calling thread up: mostly not at all, now and then for what another transaction takes, seldom for long.
inline void stall(base::Random& random) {
  const unsigned chance = random.below(100);
  if (chance < 80) return;
  if (chance < 88) return platform::yield();
  if (chance < 98) {
    for (unsigned i = random.below(1500); i > 0; --i) platform::pause();
    return;
  }
  platform::sleep_ns(10'000 + random.below(40'000));
}

}  // namespace loam::tests
