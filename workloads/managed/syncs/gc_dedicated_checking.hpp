// gc-dedicated-checking: as gc-dedicated, with one allocator for objects and logs that looks which of the two it serves.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-dedicated-checking",
        .summary = "control: as gc-dedicated, and each allocation looks whether it is for a log",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) {
    managed::setup = {.placement = gc::Placement::dedicated, .checked_allocation = true};
  }
};

}  // namespace loam::workloads
