#include "runtime/delegation/waiting.hpp"

#include "runtime/base/found.hpp"

namespace loam::delegation {

double pause_ns() noexcept {
  // The shortest of several rounds: an interrupt makes a round longer, nothing makes one shorter.
  static constinit base::Found<double> ns;
  return ns.get([] {
    constexpr int kRounds = 5, kPauses = 500;
    std::uint64_t least = ~std::uint64_t{0};
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t begin = platform::monotonic_ns();
      for (int i = 0; i < kPauses; ++i) platform::pause();
      least = std::min(least, platform::monotonic_ns() - begin);
    }
    return std::max(0.1, static_cast<double>(least) / kPauses);
  });
}

std::uint32_t pauses_for(double pause_ns) noexcept {
  constexpr double kApartNs = 13;
  return static_cast<std::uint32_t>(std::max(1.0, kApartNs / pause_ns + 0.5));
}

std::uint32_t pauses_of(const WaitingSettings& settings) noexcept {
  return settings.pauses == WaitingSettings::kCalibrated ? pauses_for(pause_ns()) : settings.pauses;
}

void sleep_on(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleeping, std::uint32_t waiting) noexcept {
  sleeping.store(1, std::memory_order_relaxed);  // relaxed: ordered by waiting.B
  platform::announce_heavy();                    // waiting.B
  // relaxed: decides only whether to sleep; the caller looks again with acquire.
  if (word.load(std::memory_order_relaxed) == waiting) platform::futex_wait(word, waiting);
  sleeping.store(0, std::memory_order_relaxed);  // relaxed: whoever still sees the mark wakes in vain
}

void wake(const std::atomic<std::uint32_t>& word) noexcept { platform::futex_wake(word, ~0u >> 1); }

}  // namespace loam::delegation
