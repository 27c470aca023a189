// two-phase: two-phase locking with visible readers. Source, guarantees, cost: runtime/tm/algorithms/two_phase.hpp
#pragma once

#include "runtime/tm/algorithms/two_phase.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::TwoPhase, false>;
using BlameSync = TmSync<tm::TwoPhase, true>;

}  // namespace loam::workloads
