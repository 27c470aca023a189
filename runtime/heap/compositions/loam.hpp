// Loam's own composition: what runtime/malloc exports.
#pragma once

#include "runtime/heap/heap.hpp"

namespace loam::heap {

template <class ThreadsHook, class FaultsHook>
struct LoamComposition {
  using Pages = SystemPages;
  using Classes = FourPerDoubling;
  using Spans = BitmapSpans<Pages>;
  using Large = LargeBlocks<Spans, Pages>;
  using Threads = ThreadsHook;
  using Faults = FaultsHook;
};

}  // namespace loam::heap
