// Pseudorandom numbers that depend only on the seed.
#pragma once

#include "runtime/base/random.hpp"
#include "simulator/engine/settings.hpp"

#include <cstdint>
#include <string_view>

namespace loam::simulator {

// A number for one purpose.
inline std::uint64_t seeded(std::string_view purpose, std::uint64_t index = 0) noexcept {
  std::uint64_t mixed = settings.seed + index * 0x9E37'79B9'7F4A'7C15;
  for (const char c : purpose) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3;
  mixed ^= mixed >> 30;
  mixed *= 0xBF58'476D'1CE4'E5B9;
  mixed ^= mixed >> 27;
  mixed *= 0x94D0'49BB'1331'11EB;
  return mixed ^ mixed >> 31;
}

// How far a region of memory begins behind the start of its page: whole lines, so that what lies in one line does not change.
inline std::uint64_t seeded_offset(std::string_view purpose, std::uint64_t index = 0) noexcept {
  constexpr std::uint64_t kLines = 64, kLineBytes = 64;
  return seeded(purpose, index) % kLines * kLineBytes;
}

}  // namespace loam::simulator
