// gc-boehm-heap: as gc-heap, with Boehm's collector in the place of ours: whether what is said of logs holds for another one.
#pragma once

#include "workloads/managed/boehm/boehm.hpp"
#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-boehm-heap",
        .summary = "control: object transactions on Boehm's collector, logs in the collected heap",
        .paper = "Boehm, Weiser, Garbage collection in an uncooperative environment, 1988",
        .kind = SyncKind::managed,
        .guarantees = managed::kTransactionGuarantees,
        .parameters = managed::transaction_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup = {gc::Placement::heap, false, &managed::kBoehmAsked}; }
};

}  // namespace loam::workloads
