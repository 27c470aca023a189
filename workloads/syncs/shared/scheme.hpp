// A scheme of delegation, or a lock that schemes are compared with, as a synchronisation: LOAM_SCHEME of
// LOAM_SCHEME_HEADER. An operation goes to the executor as a whole.
#pragma once

#include "workloads/syncs/shared/scheme_sync.hpp"

#include LOAM_SCHEME_HEADER

namespace loam::workloads {

using Sync = SchemeSync<delegation::LOAM_SCHEME<delegation::SpinThenSleep>>;
using BlameSync = Sync;

// For the applications, which know the scheme by these alone (sent.hpp).
namespace sent {
[[gnu::used]] inline void apply(void (*operation)(void* context), void* context) {
  Sync::update([=](auto&) { operation(context); });
}
[[gnu::used]] inline void quiesce() { Sync::quiesce(); }
}  // namespace sent

}  // namespace loam::workloads
