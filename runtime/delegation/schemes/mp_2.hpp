// mp-2: mp with the two optimisations of paper 001: clients wait before their first look, and the server writes answers
// past its cache (non-temporal stores).
//   Source      as mp; paper 001, section 4.1.
//   How         A client that does not look yet leaves the answer's line with the server, which then writes it without
//               asking anybody. A non-temporal store does not wait for the line either.
//   Guarantees, Cost, Orders  as mp; two drains of the store buffers per answer.
//   When not    processors on which coherence is cheaper than memory: there such stores are two to four times slower.
#pragma once

#include "runtime/delegation/parts/two_lines.hpp"

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Mp2 : public ByServer<TwoLines<W, true>> {
 public:
  static constexpr Description kDescription{.name = "mp-2",
                                            .summary = "mp with delayed looks and non-temporal answers",
                                            .paper = "MP-Server, ICDCN 2015",
                                            .guarantees = "mutual exclusion; round robin over clients",
                                            .means = Means::server};
  static constexpr bool kSleeps = W::kSleeps;

  explicit Mp2(const Settings& settings = {}) : ByServer<TwoLines<W, true>>(delayed(settings)) {}

 private:
  // About one round trip, unless something else is asked for.
  static Settings delayed(Settings settings) noexcept {
    constexpr std::uint32_t kDelayNs = 150;
    if (settings.waiting.first_delay_ns == 0) settings.waiting.first_delay_ns = kDelayNs;
    return settings;
  }
};

}  // namespace loam::delegation
