// gc-unlogged: object transactions; a control for private data: enlistments without logs of reads and undo.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-unlogged",
        .summary = "control for private data: enlistments whose logs are overwritten",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = "none: nothing is validated or undone",
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::unlogged, false}; }
};

}  // namespace loam::workloads
