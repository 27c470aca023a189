// algorithm_list: a list of algorithms as a type, from which one can be chosen by name at run time.
//   The build writes runtime/tm/algorithms.hpp from the files in algorithms/; it defines the list of all,
//   tm::Algorithms.
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

  // Calls f.template operator()<Algorithm>() for the algorithm of this name. returns false if there is none
  template <bool kBlame, class F>
  static bool with(std::string_view name, F&& f) {
    return ((Each<false>::kDescription.name == name ? (f.template operator()<Each<kBlame>>(), true) : false) || ...);
  }
};

}  // namespace loam::tm
