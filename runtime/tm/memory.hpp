// Transactional malloc and free around the process's allocator.
//   allocate  a new block; freed again, newest first, if the attempt aborts (with a redo log no other thread has seen
//             it). Requests are rounded up to 16 bytes, the granule of shadow records.
//   release   takes effect if and when the attempt commits, and then after quiescence: until the last attempt that was
//             running at the commit has ended, its reads must find the block's memory readable and not reused.
//   Source    the commit hooks of TinySTM, PPoPP 2008, with the epochs of reclaim/epoch.hpp instead of clock stamps.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <cstddef>

namespace loam::tm::memory {

// returns a block of at least `bytes`, aligned as malloc aligns; throws std::bad_alloc where malloc fails
void* allocate(Descriptor& d, std::size_t bytes);

// Frees `block` (nullptr: nothing) if the attempt commits. `bytes` is its size if known, 0 otherwise.
void release(Descriptor& d, void* block, std::size_t bytes) noexcept;

// After commit: hands the released blocks to the reclamation domain.
void commit(Descriptor& d) noexcept;

// At abort: frees the blocks allocated by the attempt and forgets the rest.
void undo(Descriptor& d) noexcept;

}  // namespace loam::tm::memory
