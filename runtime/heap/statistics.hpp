// The statistics of a heap. The numbers are read one after the other, so they may belong to different moments.
#pragma once

#include "runtime/heap/thread_heap.hpp"

#include <cstdint>

namespace loam::heap {

struct Statistics {
  std::uint64_t reserved_bytes;      // addresses of all areas
  std::uint64_t committed_bytes;     // in spans that are in use
  std::uint64_t dirty_bytes;         // free, still backed by memory
  std::uint64_t clean_bytes;         // free, once used, given back to the system: not backed
  std::uint64_t slab_bytes;          // in spans that slabs use
  std::uint64_t large_bytes;         // in large blocks, those with mappings of their own included
  std::uint64_t large_blocks;        // number
  std::uint64_t metadata_bytes;      // of the heap's own data, but the page map; a part of it is backed
  std::uint64_t purged_bytes_total;  // given back to the system since the start
  std::uint64_t areas;               // number
  std::uint64_t heaps_in_use;        // number of thread heaps with a thread
  std::uint64_t heaps_idle;          // number of thread heaps whose thread has ended
  std::uint64_t remote_blocks_sent;  // number of blocks that threads freed for others
};

// Of a heap of these layers.
template <class Spans, class Large, class Threads>
Statistics statistics_of() noexcept {
  const auto spans = Spans::usage();
  const auto large = Large::usage();
  Statistics sum{};
  sum.reserved_bytes = spans.reserved_bytes;
  sum.committed_bytes = spans.used_bytes;
  sum.dirty_bytes = spans.dirty_bytes;
  sum.clean_bytes = spans.clean_bytes;
  sum.slab_bytes = spans.slab_bytes;
  sum.large_bytes = large.bytes;
  sum.large_blocks = large.blocks;
  sum.purged_bytes_total = spans.purged_bytes_total;
  sum.areas = spans.areas;
  sum.metadata_bytes = spans.metadata_bytes;
  Threads::for_each([&sum](const auto& heap) {
    sum.metadata_bytes += sizeof heap;
    sum.remote_blocks_sent += heap.blocks_received();
    const HeapState state = heap.state.load(std::memory_order_relaxed);
    if (state == HeapState::attached) ++sum.heaps_in_use;
    if (state == HeapState::idle) ++sum.heaps_idle;
  });
  return sum;
}

}  // namespace loam::heap
