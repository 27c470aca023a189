// dctl: encounter-time locking with a deferred clock. Source, guarantees, cost: runtime/tm/algorithms/dctl.hpp
#pragma once

#include "runtime/tm/algorithms/dctl.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::Dctl, false>;
using BlameSync = TmSync<tm::Dctl, true>;

}  // namespace loam::workloads
