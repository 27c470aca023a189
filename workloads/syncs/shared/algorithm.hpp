// A transactional algorithm as the synchronisation of an executable. The build names it: LOAM_ALGORITHM_HEADER is a
// file of runtime/tm/algorithms/, LOAM_ALGORITHM the class that it defines.
#pragma once

#include "workloads/syncs/shared/tm_sync.hpp"

#include LOAM_ALGORITHM_HEADER

namespace loam::workloads {

using Sync = TmSync<tm::LOAM_ALGORITHM, false>;
using BlameSync = TmSync<tm::LOAM_ALGORITHM, true>;

}  // namespace loam::workloads
