// algorithms: all of them, for who chooses by name at run time. A new one adds its line.
#pragma once

#include "runtime/tm/algorithms/dctl.hpp"
#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/algorithms/etl_wb_hash.hpp"
#include "runtime/tm/algorithms/etl_wt.hpp"
#include "runtime/tm/algorithms/global_lock.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/algorithms/sequential.hpp"
#include "runtime/tm/algorithms/swisstm.hpp"
#include "runtime/tm/algorithms/tl2.hpp"
#include "runtime/tm/algorithms/two_phase.hpp"

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

using Algorithms = AlgorithmList<EtlWb, EtlWbHash, EtlWt, Dctl, Tl2, Norec, SwissTm, TwoPhase, GlobalLock, Sequential>;

}  // namespace loam::tm
