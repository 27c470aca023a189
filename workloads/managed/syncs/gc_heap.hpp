// gc-heap: object transactions; logs are objects of the collected heap: the baseline.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-heap",
        .summary = "object transactions, logs in the collected heap",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::heap, false}; }
};

}  // namespace loam::workloads
