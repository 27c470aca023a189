// loam-c-inline-etl-wb: the transactional memory as a program in C uses it that was compiled with -DLOAM_TM_ALGORITHM=etl-wb.
#pragma once

// clang-format off: the dash is no minus to the reader.
#define LOAM_TM_ALGORITHM etl-wb
// clang-format on

#include "workloads/syncs/shared/c_inline_sync.hpp"

namespace loam::workloads {

struct Sync : CInlineSync<tm::EtlWb> {
  static const SyncDescription& description() {
    static const SyncDescription kDescription =
        describe("loam-c-inline-etl-wb", "the C interface with the accesses of etl-wb inline");
    return kDescription;
  }
  static void configure(const Options& options) { configure_as(description().name, options); }
};
using BlameSync = Sync;

}  // namespace loam::workloads
