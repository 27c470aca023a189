// The random numbers from which the applications' inputs are made, so that inputs are those of the published suite.
//   MersenneTwister   MT19937 (Matsumoto and Nishimura, TOMACS 1998), 32-bit draws, seeded by one integer
//   PythonRandom      the same generator as Python's module `random` seeds and reads it: random() and gauss()
// When not: base::Random is faster, for everything that has no published input.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace loam::workloads::applications {

class MersenneTwister {
 public:
  using result_type = std::uint32_t;

  explicit MersenneTwister(std::uint32_t seed) noexcept {
    state_[0] = seed;
    for (unsigned i = 1; i < kWords; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
  }

  // Seeded by an array that holds this one number.
  struct AsArray {
    std::uint32_t number;
  };
  explicit MersenneTwister(AsArray key) noexcept : MersenneTwister(19650218u) {
    unsigned at = 1;
    const auto step = [&](std::uint32_t factor, auto&& mixed) {
      state_[at] = mixed((state_[at] ^ (state_[at - 1] ^ state_[at - 1] >> 30) * factor), at);
      if (++at == kWords) {
        state_[0] = state_[kWords - 1];
        at = 1;
      }
    };
    for (unsigned i = 0; i < kWords; ++i)
      step(1664525u, [&](std::uint32_t word, unsigned) { return word + key.number; });
    for (unsigned i = 1; i < kWords; ++i)
      step(1566083941u, [](std::uint32_t word, unsigned place) { return word - place; });
    state_[0] = 0x80000000u;
  }

  std::uint32_t operator()() noexcept {
    if (next_ == kWords) refill();
    std::uint32_t word = state_[next_++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
  }

  // [0, count), count > 0, by the remainder, as the published inputs are drawn.
  std::uint64_t below(std::uint64_t count) noexcept { return std::uint64_t{(*this)()} % count; }

  static constexpr std::uint32_t min() noexcept { return 0; }
  static constexpr std::uint32_t max() noexcept { return ~std::uint32_t{0}; }

 private:
  static constexpr unsigned kWords = 624, kMiddle = 397;

  void refill() noexcept {
    for (unsigned i = 0; i < kWords; ++i) {
      const std::uint32_t both = (state_[i] & 0x80000000u) | (state_[(i + 1) % kWords] & 0x7fffffffu);
      state_[i] = state_[(i + kMiddle) % kWords] ^ both >> 1 ^ ((both & 1) != 0 ? 0x9908b0dfu : 0u);
    }
    next_ = 0;
  }

  std::uint32_t state_[kWords];
  unsigned next_ = kWords;
};

class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed) noexcept : words_(MersenneTwister::AsArray{seed}) {}

  // [0, 1), 53 bits.
  double random() noexcept {
    const std::uint32_t high = words_() >> 5, low = words_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  // int(random() * count)
  std::uint64_t below(std::uint64_t count) noexcept {
    return static_cast<std::uint64_t>(random() * static_cast<double>(count));
  }

  double gauss(double mean, double sigma) noexcept {
    if (has_next_) {
      has_next_ = false;
      return mean + next_ * sigma;
    }
    const double angle = random() * (2.0 * std::numbers::pi);
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random()));
    next_ = std::sin(angle) * radius;
    has_next_ = true;
    return mean + std::cos(angle) * radius * sigma;
  }

 private:
  MersenneTwister words_;
  double next_ = 0;
  bool has_next_ = false;
};

}  // namespace loam::workloads::applications
