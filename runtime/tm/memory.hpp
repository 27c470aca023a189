// Transactional malloc and free around the process's allocator.
//   allocate  a new block; freed again, newest first, if the attempt aborts (with a redo log no other thread has seen
//             it). Requests are rounded up to 16 bytes, the granule of shadow records.
//   release   takes effect if and when the attempt commits, and then after quiescence: until the last attempt that was
//             running at the commit has ended, its reads must find the block's memory readable and not reused.
//   Policy    under a stalled attempt: what a thread holds back is bounded (reclaim/epoch.hpp, Limits: 64 MiB); over
//             the bound it waits after its commit, for at most a second; then it reports the stall, and the bound
//             doubles. Nothing is freed early.
//   Source    the commit hooks of TinySTM, PPoPP 2008, with the epochs of reclaim/epoch.hpp instead of clock stamps.
#pragma once

#include "runtime/tm/blame.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/explain.hpp"
#include "runtime/tm/runtime.hpp"

#include <cstddef>
#include <cstdlib>

namespace loam::tm::memory {

inline constexpr std::size_t kGranuleBytes = std::size_t{1} << kShadowShift;

// Frees a block and counts it for the calling thread.
void free_counted(void* block);

[[noreturn]] void out_of_memory();

// returns a block of at least `bytes`, aligned as malloc aligns; throws std::bad_alloc where malloc fails
template <bool kBlame>
void* allocate(Descriptor& d, std::size_t bytes) {
  const std::size_t rounded = (bytes + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
  void* const block = rounded < bytes ? nullptr : std::malloc(rounded);
  if (block == nullptr) [[unlikely]]
    out_of_memory();
  ++d.statistics.blocks_allocated;
  d.allocated.begin()[d.allocated_count] = block;
  if (++d.allocated_count == d.allocated.capacity()) [[unlikely]]
    d.allocated.full();
  if constexpr (kBlame) {
    blame::note_block(block, rounded);
    explain::allocated(block, rounded);
  }
  return block;
}

// Frees `block` (nullptr: nothing) if the attempt commits. `bytes` is its size if known, 0 otherwise.
inline void release(Descriptor& d, void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  d.special = true;
  domain.propose(d.limbo, block, free_counted, bytes);
}

// Frees the blocks allocated since the log of allocations had `count` entries.
void undo_to(Descriptor& d, std::uint64_t count) noexcept;

// At abort: frees the blocks allocated by the attempt and forgets those it released.
void undo(Descriptor& d) noexcept;

// Brings the descriptor's published counts up to date with its limbo.
inline void count_held(Descriptor& d) noexcept {
  // relaxed: counts, which order nothing
  d.held_blocks.store(d.limbo.blocks(), std::memory_order_relaxed);
  d.held_bytes.store(d.limbo.bytes(), std::memory_order_relaxed);
}

// The same of one that is about to hand its limbo over.
inline void count_none(Descriptor& d) noexcept {
  d.held_blocks.store(0, std::memory_order_relaxed);  // relaxed: as above
  d.held_bytes.store(0, std::memory_order_relaxed);
}

// Memory that was released by commits and not given back to the allocator yet.
struct HeldBack {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // of the blocks as far as their sizes are known (destroy), and of the lists that keep them
};

// By this thread; by all threads, those included that have ended. Call at any time: a moment old, and exact for threads
// that do not run transactions.
HeldBack held_back() noexcept;
HeldBack held_back_of_all() noexcept;

}  // namespace loam::tm::memory
