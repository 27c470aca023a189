// none: nothing is shared, so nothing is synchronised. What the harness wants to know of the executable that holds the
// workloads of this folder.
#pragma once

#include "workloads/harness/sync.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "none",
                                                  .summary = "threads share nothing: workloads that only allocate",
                                                  .paper = "",
                                                  .kind = SyncKind::none,
                                                  .guarantees = "none"};
    return kDescription;
  }
  static void configure(const Options&) {}
};

}  // namespace loam::workloads
