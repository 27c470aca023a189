// c_inline_sync: the transactional memory as a program in C uses it that was compiled with -DLOAM_TM_ALGORITHM=...:
// accesses are inline (include/loam/tm_inlined.h), begin and commit are calls. The including file has defined
// LOAM_TM_ALGORITHM.
#pragma once

#include "workloads/syncs/shared/c_sync.hpp"

#include <string_view>

namespace loam::workloads {

// AlgorithmOf: that of LOAM_TM_ALGORITHM
template <template <bool kBlame> class AlgorithmOf>
struct CInlineSync : CSync {
  static SyncDescription describe(std::string_view name, std::string_view summary) {
    SyncDescription d = TmSync<AlgorithmOf, false>::description();
    d.name = name;
    d.summary = summary;
    d.paper = "";
    d.blame = false;
    return d;
  }

  static void configure_as(std::string_view name, const Options& options) {
    using Algorithm = AlgorithmOf<false>;
    static constexpr std::string_view kAlgorithm = Algorithm::kDescription.name;
    static_assert(kAlgorithm == LOAM_INLINED_ALGORITHM);
    if constexpr (tm::uses_records<Algorithm>())
      apply(name, config_with_records_of(kAlgorithm, options.parameters));
    else
      apply(name, config_of(kAlgorithm, options.parameters));
  }
};

}  // namespace loam::workloads
