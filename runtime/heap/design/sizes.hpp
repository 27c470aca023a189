// Sizes: which block serves a request, for each value of the factors `classes` and `least`.
#pragma once

#include "runtime/heap/design/factors.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace loam::heap::design {

inline constexpr std::size_t kSmallMax = 32768;  // longer blocks are mappings of their own
inline constexpr unsigned kClassesMax = 1 + kSmallMax / 16;

class Sizes {
 public:
  // room: bytes in front of each block that belong to the allocator, 0 or 8
  void start(const Factors& factors, std::size_t room) noexcept {
    classes_ = static_cast<Classes>(factors.classes);
    least_ = std::max<std::size_t>(factors.least, room == 0 ? 8 : 16);
    room_ = room;
  }

  // The stride of a class's blocks that serves `bytes`, at most kSmallMax - room.
  std::size_t stride_of(std::size_t bytes) const noexcept {
    const std::size_t whole = std::max(bytes + room_, least_);
    if (whole <= 8) return 8;
    if (classes_ == Classes::powers) return std::max<std::size_t>(16, std::bit_ceil(whole));
    if (classes_ == Classes::sixteens || whole <= 128) return (whole + 15) & ~std::size_t{15};
    const std::size_t step = std::bit_floor(whole - 1) / 4;
    return (whole + step - 1) & ~(step - 1);
  }
  // A number below kClassesMax for each stride: strides but the shortest are multiples of 16.
  static unsigned index_of(std::size_t stride) noexcept { return stride == 8 ? 0 : static_cast<unsigned>(stride / 16); }
  static std::size_t stride_at(unsigned index) noexcept { return index == 0 ? 8 : std::size_t{index} * 16; }

 private:
  Classes classes_ = Classes::quarters;
  std::size_t least_ = 8, room_ = 0;
};

}  // namespace loam::heap::design
