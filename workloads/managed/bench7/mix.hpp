// Which operation comes next.
//   Weights: long traversals 5, short ones 40, operations 45, structural modifications 10. A share of each reads only;
//   structural modifications belong to the rest. Inside of a category all operations are equally likely.
#pragma once

#include "workloads/managed/bench7/catalogue.hpp"

#include <array>

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

  std::size_t draw(base::Random& random) const noexcept {
    const double at = static_cast<double>(random() >> 11) * 0x1p-53;
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

}  // namespace loam::workloads::managed::bench7
