// tl2: commit-time locking. Source, guarantees, cost: runtime/tm/algorithms/tl2.hpp
#pragma once

#include "runtime/tm/algorithms/tl2.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::Tl2, false>;
using BlameSync = TmSync<tm::Tl2, true>;

}  // namespace loam::workloads
