// gc-dedicated: object transactions; logs lie in chunks outside of the heap, from one free list.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-dedicated",
        .summary = "object transactions, logs in a heap of their own",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::dedicated, false}; }
};

}  // namespace loam::workloads
