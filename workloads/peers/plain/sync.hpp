// plain: the sets in plain C++, without templates and without synchronisation.
// This is what the harness wants to know of it; nothing here runs per operation. The sets themselves are plain/*.cpp.
#pragma once

#include "workloads/harness/sync.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "plain",
                                                  .summary = "one thread, written by hand without policies",
                                                  .paper = "",
                                                  .kind = SyncKind::none,
                                                  .guarantees = "none",
                                                  .threads_max = 1};
    return kDescription;
  }
  static void configure(const Options&) {}
};

}  // namespace loam::workloads
