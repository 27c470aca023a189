// lock-free-hazard: Michael and Scott's lock-free queue, Treiber's stack; nodes are freed when no hazard pointer names them.
#pragma once

#include "structures/by_hazards.hpp"
#include "workloads/objects/shared/lock_free_sync.hpp"

namespace loam::workloads {

struct Sync : objects::LockFreeSync<structures::ByHazards> {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{
        .name = "lock-free-hazard",
        .summary = "a queue and a stack of compare-and-swaps, with hazard pointers",
        .paper = "PODC 1996, Treiber 1986; hazard pointers, TPDS 2004",
        .kind = SyncKind::structure,
        .guarantees = "linearizable; lock-free; a thread that stands still holds back two nodes",
        .threads_max = kThreads};
    return kDescription;
  }
};
using BlameSync = Sync;

}  // namespace loam::workloads
