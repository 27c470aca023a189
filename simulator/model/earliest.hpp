// Which of the cores has the next event: a tournament. Each node of a binary tree has the smaller time of its two children.
//   Cost  a change of a time, and finding the two first ones: a step for each level of the tree each, without branches that
//         are hard to predict. (A search through the times of 128 cores took a fifth of a simulation in which 64 of them share.)
#pragma once

#include "simulator/model/core_set.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace loam::simulator {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

class Earliest {
 public:
  // first: the least time, at the lowest of the cores that have it; second: the least of the others
  struct Found {
    unsigned core;
    std::uint64_t first, second;
  };

  // Cores 0 to count - 1; nothing happens at any of them.
  void init(unsigned count) noexcept {
    leaves_ = std::bit_ceil(count);
    std::fill(std::begin(times_), std::end(times_), kNever);
  }

  std::uint64_t at(unsigned core) const noexcept { return times_[leaves_ + core]; }

  void set(unsigned core, std::uint64_t time) noexcept {
    std::size_t at = leaves_ + core;
    times_[at] = time;
    while ((at /= 2) > 1) times_[at] = std::min(times_[2 * at], times_[2 * at + 1]);
  }

  Found find() const noexcept {
    std::uint64_t second = kNever;
    std::size_t at = 1;
    while (at < leaves_) {
      const std::uint64_t left = times_[2 * at], right = times_[2 * at + 1];
      second = std::min(second, std::max(left, right));
      at = 2 * at + static_cast<std::size_t>(right < left);
    }
    return {static_cast<unsigned>(at - leaves_), times_[at], second};
  }

 private:
  std::size_t leaves_ = 1;
  // The root is at 1 and has no time of its own, the children of i are at 2 i and 2 i + 1, and the cores from leaves_ on.
  std::uint64_t times_[2 * kCoresMax];
};

}  // namespace loam::simulator
