// gc-raw: objects of the managed heap without synchronisation: the lower bound.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-raw",
        .summary = "no synchronisation: one thread, or data that each thread has to itself",
        .paper = "",
        .kind = SyncKind::managed,
        .guarantees = "none",
        .parameters = managed::heap_parameters()};
    return kDescription;
  }
  static void configure(const Options&) {}
};

}  // namespace loam::workloads
