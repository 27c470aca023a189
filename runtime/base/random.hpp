// Deterministic random numbers: one seed per process, split into one independent stream per thread.
//   Random    xoroshiro128++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", TOMS 2021):
//             two words of state, about 1 ns per draw, all 64 bits good.
//   Erand48   libc's 48-bit generator, as published transactional benchmarks draw their keys; about 5 ns per draw.
// When not: neither is for secrets.
#pragma once

#include "runtime/base/bits.hpp"

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace loam::base {

class Random {
 public:
  using result_type = std::uint64_t;

  // Streams of one seed do not overlap in practice: their states are two mixed words of a 2^128 cycle.
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0) noexcept
      : low_(mix(seed + kGolden * (2 * stream + 1))), high_(mix(low_ + kGolden * (2 * stream + 2))) {
    // R1 the state is never all zero: zero would be a fixed point.
    if ((low_ | high_) == 0) high_ = kGolden;
  }

  constexpr std::uint64_t operator()() noexcept {
    const auto low = low_;
    auto high = high_;
    const auto result = std::rotl(low + high, 17) + low;
    high ^= low;
    low_ = std::rotl(low, 49) ^ high ^ (high << 21);
    high_ = std::rotl(high, 28);
    return result;
  }

  // Uniform in [0, count), count > 0, from the upper half of one draw.
  constexpr std::uint32_t below(std::uint32_t count) noexcept {
    return scale_to(static_cast<std::uint32_t>((*this)() >> 32), count);
  }

  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: spreads consecutive counters

  std::uint64_t low_, high_;
};

class Erand48 {
 public:
  explicit Erand48(std::uint64_t seed, std::uint64_t stream = 0) noexcept {
    const auto word = Random(seed, stream)();
    for (int i = 0; i < 3; ++i) state_[i] = static_cast<unsigned short>(word >> (16 * i));
  }

  // Uniform in [0, count).
  std::uint32_t below(std::uint32_t count) noexcept {
    return static_cast<std::uint32_t>(static_cast<int>(::erand48(state_) * static_cast<int>(count)));
  }

 private:
  unsigned short state_[3];
};

}  // namespace loam::base
