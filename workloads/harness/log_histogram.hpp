// A histogram of numbers from 0 to 2^64 - 1 whose quantiles are off by at most a 128th of their value.
//   Numbers under 64 have a bucket each; from there on each power of two is divided into 64 buckets of equal width, and
//   a bucket stands for its middle. The idea of HdrHistogram (Tene).   Cost  a count of leading zeros, a shift and an
//   increment per number; 30 KiB.
//   All zero bytes are an empty one, so that it can lie in fresh pages of the operating system.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace loam::workloads {

class LogHistogram {
 public:
  // Of the middle of a bucket to any number in it, over the number.
  static constexpr double kErrorMax = 1.0 / 128;

  void add(std::uint64_t number) noexcept {
    ++counts_[bucket_of(number)];
    ++count_;
    max_ = std::max(max_, number);
  }

  LogHistogram& operator+=(const LogHistogram& more) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += more.counts_[i];
    count_ += more.count_;
    max_ = std::max(max_, more.max_);
    return *this;
  }

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t max() const noexcept { return max_; }  // exact

  // About the least number that at least this part of all, in (0, 1], does not exceed; 0 if there are none.
  double quantile(double part) const noexcept {
    const auto rank = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i)
      if ((seen += counts_[i]) >= rank && seen != 0) return std::min(middle_of(i), static_cast<double>(max_));
    return 0;
  }

 private:
  static constexpr unsigned kLog2 = 6;  // of the buckets per power of two
  static constexpr std::size_t kPerPower = std::size_t{1} << kLog2, kBuckets = (64 - kLog2 + 1) * kPerPower;

  // The highest bits of a number, 64 to 127, follow the number of those that are left out.
  static constexpr std::size_t bucket_of(std::uint64_t number) noexcept {
    const unsigned width = static_cast<unsigned>(std::bit_width(number | (kPerPower - 1)));
    const unsigned left_out = width - std::min(width, kLog2 + 1);
    return left_out * kPerPower + static_cast<std::size_t>(number >> left_out);
  }
  static constexpr double middle_of(std::size_t bucket) noexcept {
    if (bucket < 2 * kPerPower) return static_cast<double>(bucket);
    const std::size_t left_out = bucket / kPerPower - 1;
    const double least = std::ldexp(static_cast<double>(bucket - left_out * kPerPower), static_cast<int>(left_out));
    return least + (std::ldexp(1.0, static_cast<int>(left_out)) - 1) / 2;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0, max_ = 0;
};

}  // namespace loam::workloads
