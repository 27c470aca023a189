// gc-nursery: object transactions; as gc-arena, and an abort gives back the memory of its objects.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-nursery",
        .summary = "object transactions, a nursery per transaction, logs in an arena per thread",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::arena, true}; }
};

}  // namespace loam::workloads
