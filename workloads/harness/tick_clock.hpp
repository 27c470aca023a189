// Converts the ticks of platform::ordered_ticks() into nanoseconds on this machine.
#pragma once

#include <cstdint>

namespace loam::workloads {

struct TickClock {
  // Compares the ticks with the system's monotonic clock, for 10 ms.
  static TickClock calibrated() noexcept;

  double ns(double ticks) const noexcept { return ticks * ns_per_tick; }
  std::uint64_t ticks(std::uint64_t ns) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ns) / ns_per_tick);
  }

  double ns_per_tick;
  // The least by which two readings differ, if they do: on some virtual machines many ticks.
  double step_ns;
};

}  // namespace loam::workloads
