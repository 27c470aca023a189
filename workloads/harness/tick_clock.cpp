#include "workloads/harness/tick_clock.hpp"

#include "runtime/platform/machine.hpp"

#include <algorithm>

namespace loam::workloads {
namespace {

constexpr std::uint64_t kCalibrationNs = 10'000'000;
constexpr int kTries = 16, kSteps = 1000;

struct Moment {
  std::uint64_t ticks, ns;
};

// Both clocks at the same time: of several tries the one that took least.
Moment now() noexcept {
  Moment found{};
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = platform::ordered_ticks(), ns = platform::monotonic_ns();
    const std::uint64_t took = platform::ordered_ticks() - before;
    if (took >= least) continue;
    least = took;
    found = {before + took / 2, ns};
  }
  return found;
}

}  // namespace

TickClock TickClock::calibrated() noexcept {
  const Moment first = now();
  while (platform::monotonic_ns() - first.ns < kCalibrationNs) platform::pause();
  const Moment last = now();
  const double ns_per_tick = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);

  std::uint64_t step = last.ticks - first.ticks;
  for (int i = 0; i < kSteps; ++i) {
    const std::uint64_t before = platform::ordered_ticks(), after = platform::ordered_ticks();
    if (after > before) step = std::min(step, after - before);
  }
  return {ns_per_tick, static_cast<double>(step) * ns_per_tick};
}

}  // namespace loam::workloads
