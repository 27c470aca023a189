// loam-c-inline: the transactional memory as a program in C uses it that was compiled with -DLOAM_TM_ALGORITHM=norec:
// accesses are inline (include/loam/tm_norec.h), begin and commit are calls.
#pragma once

#define LOAM_TM_ALGORITHM norec

#include "workloads/syncs/shared/c_sync.hpp"

namespace loam::workloads {

struct Sync : CSync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription = [] {
      SyncDescription d = TmSync::description();
      d.name = "loam-c-inline";
      d.summary = "the C interface with the accesses of norec inline";
      d.paper = "";
      d.blame = false;
      return d;
    }();
    return kDescription;
  }

  static void configure(const Options& options) {
    apply(description().name, config_of(tm::Norec<false>::kDescription.name, options.parameters));
  }
};
using BlameSync = Sync;

}  // namespace loam::workloads
