#include "runtime/tm/waiting.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/serial.hpp"

#include <algorithm>

namespace loam::tm::waiting {
namespace {

constexpr unsigned kSleepersMax = 1U << 30;
// A waiter that was woken for nothing looks this many times before it sleeps again. Less often than every kPollNs if a
// look takes long: it uses one part in kShare of a core for looking, whatever it has read.
constexpr unsigned kPolls = 64;
constexpr std::uint64_t kShare = 256;

// Sleeps until still() is false.
template <class Still>
void sleep_while(const Still& still) noexcept {
  for (;;) {
    shared.sleepers.exchange(1, std::memory_order_seq_cst);
    platform::announce_heavy();  // waiting.A
    LOAM_POINT("tm.registered");
    if (!still()) return;
    platform::futex_wait(shared.sleepers, 1);
    for (unsigned poll = 0; poll < kPolls; ++poll) {
      const std::uint64_t before = platform::monotonic_ns();
      if (!still()) return;
      platform::sleep_ns(std::max(kPollNs, (platform::monotonic_ns() - before) * kShare));
    }
  }
}

}  // namespace

void wake() noexcept {
  shared.sleepers.exchange(0, std::memory_order_relaxed);  // relaxed: the futex decides, and who wakes looks again
  platform::futex_wake(shared.sleepers, kSleepersMax);
}

void wait(bool (*unchanged)(Descriptor&), Descriptor& argument, std::uint64_t generation,
          bool any_commit_wakes) noexcept {
  const auto still = [&] { return unchanged(argument) && serial::generation() == generation; };
  if (!any_commit_wakes) return sleep_while(still);
  // CPU time: a thread that was not running has cost nothing.
  std::uint64_t& woken = argument.contention.woken_cpu;
  const bool in_vain = woken != 0;
  if (in_vain) {
    LOAM_POINT("tm.pausing");
    platform::sleep_ns(std::clamp((platform::thread_cpu_ns() - woken) * kShare, kPollNs, kPauseNsMax));
  }
  // After a pause among frequent commits there is nothing to sleep for, and no reason to interrupt those who commit.
  if (!in_vain || still()) sleep_while(still);
  woken = platform::thread_cpu_ns();
}

}  // namespace loam::tm::waiting
