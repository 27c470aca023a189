// gc-lock: one lock around each operation on objects of the managed heap.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{.name = "gc-lock",
                                              .summary = "one lock around each operation, objects of the managed heap",
                                              .paper = "",
                                              .kind = SyncKind::managed,
                                              .guarantees = "mutual exclusion; nothing is taken back",
                                              .parameters = managed::heap_parameters()};
    return kDescription;
  }
  static void configure(const Options&) {}
};

}  // namespace loam::workloads
