#include "runtime/tm/waiting.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/serial.hpp"

#include <algorithm>

namespace loam::tm::waiting {
namespace {

constexpr unsigned kSleepersMax = 1U << 30;
// A waiter that was woken for nothing looks by itself this often, and this many times before it sleeps again. Less
// often if a look takes long: it uses one part in kShare of a core for looking, whatever it has read.
constexpr std::uint64_t kPollNs = 800'000, kShare = 256;
constexpr unsigned kPolls = 64;

}  // namespace

void wake() noexcept {
  shared.sleepers.exchange(0, std::memory_order_relaxed);  // relaxed: the futex decides, and who wakes looks again
  platform::futex_wake(shared.sleepers, kSleepersMax);
}

void wait(bool (*unchanged)(Descriptor&), Descriptor& argument, std::uint64_t generation) noexcept {
  const auto still = [&] { return unchanged(argument) && serial::generation() == generation; };
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

}  // namespace loam::tm::waiting
