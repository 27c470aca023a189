// etl-wb: encounter-time locking with write-back. Source, guarantees, cost: runtime/tm/algorithms/etl_wb.hpp
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::EtlWb, false>;
using BlameSync = TmSync<tm::EtlWb, true>;

}  // namespace loam::workloads
