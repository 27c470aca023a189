// gc-arena: object transactions; each log of each thread has a range of addresses of its own.
#pragma once

#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-arena",
        .summary = "object transactions, logs in an arena per thread",
        .paper = "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::arena, false}; }
};

}  // namespace loam::workloads
