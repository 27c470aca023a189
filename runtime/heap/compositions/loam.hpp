// Loam's own compositions: what runtime/malloc exports.
#pragma once

#include "runtime/heap/apart.hpp"
#include "runtime/heap/guarded.hpp"
#include "runtime/heap/heap.hpp"
#include "runtime/heap/sampled.hpp"

namespace loam::heap {

template <class ThreadsHook, class FaultsHook, PageSource PagesLayer = SystemPages,
          ServingOrder kServingOrder = ServingOrder::latest_first>
struct LoamComposition {
  using Pages = PagesLayer;
  using Classes = FourPerDoubling;
  using Spans = BitmapSpans<Pages>;
  using Large = LargeBlocks<Spans, Pages>;
  using Threads = ThreadsHook;
  using Faults = FaultsHook;
  static constexpr ServingOrder kOrder = kServingOrder;
};

// The same, or behind Guarded if Switch::on() says so. What it says never changes in a process.
template <class ThreadsHook, class FaultsHook, class Switch, PageSource PagesLayer = SystemPages>
struct LoamOrGuardedComposition : LoamComposition<ThreadsHook, FaultsHook, PagesLayer> {
  using Behind = Heap<LoamComposition<ThreadsHook, FaultsHook, PagesLayer, ServingOrder::by_address>>;
  using Guarded = heap::Guarded<Behind>;
  static bool guarded() noexcept { return Switch::on(); }
};

// The same with samples, in front of the guards or without them. Switch::on(): whether guarded; the rest: sampled.hpp.
template <class ThreadsHook, class FaultsHook, class Switch, PageSource PagesLayer = SystemPages>
struct LoamWithSamplesComposition : LoamOrGuardedComposition<ThreadsHook, FaultsHook, Switch, PagesLayer> {
  using Samples = heap::Samples<PagesLayer, Switch>;
  using Guarded =
      Sampled<typename LoamOrGuardedComposition<ThreadsHook, FaultsHook, Switch, PagesLayer>::Guarded, Samples>;
};

// The same, or with blocks of some callers apart: Switch::second(). Switch::on() is true then as well.
template <class ThreadsHook, class FaultsHook, class Switch, PageSource PagesLayer = SystemPages>
struct LoamOrApartComposition : LoamWithSamplesComposition<ThreadsHook, FaultsHook, Switch, PagesLayer> {
  using Apart = heap::Apart<Heap<LoamComposition<ThreadsHook, FaultsHook, PagesLayer>>>;
  using Guarded =
      Either<typename LoamWithSamplesComposition<ThreadsHook, FaultsHook, Switch, PagesLayer>::Guarded, Apart, Switch>;
};

}  // namespace loam::heap
