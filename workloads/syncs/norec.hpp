// norec: one sequence word, validation by value. Source, guarantees, cost: runtime/tm/algorithms/norec.hpp
#pragma once

#include "runtime/tm/algorithms/norec.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::Norec, false>;
using BlameSync = TmSync<tm::Norec, true>;

}  // namespace loam::workloads
