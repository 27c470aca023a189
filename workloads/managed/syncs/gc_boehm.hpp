// gc-boehm: objects of Boehm's collector without synchronisation: the control for ours.
#pragma once

#include "workloads/managed/boehm/boehm.hpp"
#include "workloads/managed/harness/setup.hpp"

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static const SyncDescription kDescription{
        .name = "gc-boehm",
        .summary = "control: Boehm's collector, which moves nothing; no synchronisation",
        .paper = "Boehm, Weiser, Garbage collection in an uncooperative environment, 1988",
        .kind = SyncKind::managed,
        .guarantees = "none",
        .parameters = managed::heap_parameters()};
    return kDescription;
  }
  static void configure(const Options&) { managed::setup.backend = &managed::kBoehm; }
};

}  // namespace loam::workloads
