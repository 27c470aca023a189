// etl-wt: encounter-time locking with write-through. Source, guarantees, cost: runtime/tm/algorithms/etl_wt.hpp
#pragma once

#include "runtime/tm/algorithms/etl_wt.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::EtlWt, false>;
using BlameSync = TmSync<tm::EtlWt, true>;

}  // namespace loam::workloads
