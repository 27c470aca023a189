// etl-wb-hash: etl-wb over a hashed table. Source, guarantees, cost: runtime/tm/algorithms/etl_wb_hash.hpp
#pragma once

#include "runtime/tm/algorithms/etl_wb_hash.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::EtlWbHash, false>;
using BlameSync = TmSync<tm::EtlWbHash, true>;

}  // namespace loam::workloads
