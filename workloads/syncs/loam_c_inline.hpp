// loam-c-inline: the transactional memory as a program in C uses it that was compiled with -DLOAM_TM_ALGORITHM=norec.
#pragma once

#define LOAM_TM_ALGORITHM norec

#include "workloads/syncs/shared/c_inline_sync.hpp"

namespace loam::workloads {

struct Sync : CInlineSync<tm::Norec> {
  static const SyncDescription& description() {
    static const SyncDescription kDescription =
        describe("loam-c-inline", "the C interface with the accesses of norec inline");
    return kDescription;
  }
  static void configure(const Options& options) { configure_as(description().name, options); }
};
using BlameSync = Sync;

}  // namespace loam::workloads
