#include "runtime/tm/waiting.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/serial.hpp"

namespace loam::tm::waiting {
namespace {

constexpr unsigned kSleepersMax = 1U << 30;
// A waiter looks by itself this often after it was woken for nothing, and this many times before it sleeps again.
constexpr std::uint64_t kPollNs = 700'000;
constexpr unsigned kPolls = 64;
// And this often without being woken: what changes without a commit (a serial transaction) is seen late, not never.
constexpr std::uint64_t kSleepNs = 20'000'000;

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
    platform::futex_wait(shared.sleepers, 1, kSleepNs);
    for (unsigned poll = 0; poll < kPolls; ++poll) {
      if (!still()) return;
      platform::sleep_ns(kPollNs);
    }
  }
}

}  // namespace loam::tm::waiting
