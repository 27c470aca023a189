// Which operation comes next.
//   Weights: long traversals 5, short ones 40, operations 45, structural modifications 10. A share of each reads only;
//   structural modifications belong to the rest. Inside of a category all operations are equally likely.
//   Draws  the operations of one thread. Even ones are a systematic sample: the places of n operations on the line of all
//   shares lie 1/n apart, in an order by chance. Each operation comes as often as its share says, within one. A run of
//   sixty operations has three long traversals of twelve kinds, so that drawing each alone makes seeds differ.
#pragma once

#include "workloads/managed/bench7/catalogue.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace loam::workloads::managed::bench7 {

struct MixSettings {
  double read_share;
  bool long_traversals, structural;
};

class Mix {
 public:
  explicit Mix(const MixSettings& settings) {
    const double reads = settings.read_share, updates = 1 - reads;
    const double longs = settings.long_traversals ? 5 : 0, shorts = 40, operations = 45,
                 structural = settings.structural ? 10 * updates : 0;
    const double sum = longs + shorts + operations + structural;
    shares_ = {longs * updates / sum,      longs * reads / sum,      shorts * updates / sum, shorts * reads / sum,
               operations * updates / sum, operations * reads / sum, structural / sum};
    std::array<unsigned, kCategories> counts{};
    for (const auto& operation : kOperations<PlainAccess>) ++counts[index(operation.category)];
    double until = 0;
    for (std::size_t i = 0; i < kOperationCount; ++i) {
      const std::size_t category = index(kOperations<PlainAccess>[i].category);
      bounds_[i] = until += shares_[category] / counts[category];
    }
  }
  // One operation alone.
  explicit Mix(std::size_t only) {
    shares_[index(kOperations<PlainAccess>[only].category)] = 1;
    for (std::size_t i = only; i < kOperationCount; ++i) bounds_[i] = 1;
  }

  // at: in [0, 1), a place on the line of all shares
  std::size_t operation_at(double at) const noexcept {
    std::size_t i = 0;
    while (i + 1 < kOperationCount && at >= bounds_[i]) ++i;
    // The sum of all shares may be a little less than one.
    while (i != 0 && bounds_[i] == bounds_[i - 1]) --i;
    return i;
  }
  double share(std::size_t category) const noexcept { return shares_[category]; }

  static std::size_t index(Category category) noexcept { return static_cast<std::size_t>(category); }

 private:
  std::array<double, kCategories> shares_{};  // expected
  std::array<double, kOperationCount> bounds_{};
};

class Draws {
 public:
  // even: rounds of at most kRound operations that are a systematic sample; else each is drawn alone
  Draws(const Mix& mix, bool even, std::uint64_t operations)
      : mix_(mix), even_(even), round_(static_cast<std::size_t>(std::min(operations, kRound))) {}

  std::size_t next(base::Random& random) {
    if (!even_) return mix_.operation_at(uniform(random));
    if (left_.empty()) deal(random);
    const std::size_t operation = left_.back();
    left_.pop_back();
    return operation;
  }

 private:
  static constexpr std::uint64_t kRound = 4096;
  static_assert(kOperationCount <= 256);

  static double uniform(base::Random& random) noexcept { return static_cast<double>(random() >> 11) * 0x1p-53; }

  void deal(base::Random& random) {
    const double first = uniform(random), count = static_cast<double>(round_);
    left_.resize(round_);
    for (std::size_t i = 0; i < round_; ++i)
      left_[i] = static_cast<std::uint8_t>(mix_.operation_at((static_cast<double>(i) + first) / count));
    for (std::size_t i = round_; i > 1; --i)
      std::swap(left_[i - 1], left_[random.below(static_cast<std::uint32_t>(i))]);
  }

  const Mix& mix_;
  const bool even_;
  const std::size_t round_;
  std::vector<std::uint8_t> left_;
};

}  // namespace loam::workloads::managed::bench7
