// algorithm_list: algorithms as a type, to choose one by name at run time.
//   runtime/tm/algorithms.hpp, which the build makes of the files in algorithms/, names them all as tm::Algorithms.
#pragma once

#include "runtime/tm/algorithm.hpp"

#include <array>
#include <string_view>

namespace loam::tm {

template <template <bool kBlame> class... Each>
struct AlgorithmList {
  static constexpr std::size_t kCount = sizeof...(Each);
  static constexpr std::array<std::string_view, kCount> kNames{Each<false>::kDescription.name...};
  static constexpr std::array<AlgorithmDescription, kCount> kDescriptions{Each<false>::kDescription...};

  // Calls f.template operator()<Algorithm>() for the one of this name. returns false if there is none
  template <bool kBlame, class F>
  static bool with(std::string_view name, F&& f) {
    return ((Each<false>::kDescription.name == name ? (f.template operator()<Each<kBlame>>(), true) : false) || ...);
  }
};

}  // namespace loam::tm
