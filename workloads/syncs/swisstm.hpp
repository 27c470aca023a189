// swisstm: write/write conflicts at once, read/write at commit. Source, guarantees, cost:
// runtime/tm/algorithms/swisstm.hpp
#pragma once

#include "runtime/tm/algorithms/swisstm.hpp"
#include "workloads/shared/tm_sync.hpp"

namespace loam::workloads {

using Sync = TmSync<tm::SwissTm, false>;
using BlameSync = TmSync<tm::SwissTm, true>;

}  // namespace loam::workloads
