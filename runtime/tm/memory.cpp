#include "runtime/tm/memory.hpp"

#include "runtime/tm/blame.hpp"
#include "runtime/tm/runtime.hpp"

#include <cstdlib>
#include <new>

namespace loam::tm::memory {
namespace {

constexpr std::size_t kGranuleBytes = std::size_t{1} << kShadowShift;
// An entry is a request to free if this bit of `bytes` is set: a new block of any size has it clear.
constexpr std::uint64_t kRelease = 1ULL << 63;

void free_counted(void* block) {
  ++Descriptor::current().statistics.blocks_freed;
  std::free(block);
}

void append(Descriptor& d, MemoryEntry entry) noexcept {
  if (d.memory_count == d.memory.capacity()) [[unlikely]]
    d.memory.full();
  d.memory.begin()[d.memory_count++] = entry;
}

}  // namespace

void* allocate(Descriptor& d, std::size_t bytes) {
  const std::size_t rounded = (bytes + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
  if (rounded < bytes) throw std::bad_alloc();
  void* const block = std::malloc(rounded);
  if (block == nullptr) throw std::bad_alloc();
  ++d.statistics.blocks_allocated;
  append(d, {block, rounded});
  if (shared.config.blame) blame::note_block(block, rounded);
  return block;
}

void release(Descriptor& d, void* block, std::size_t bytes) noexcept {
  if (block != nullptr) append(d, {block, bytes | kRelease});
}

void commit(Descriptor& d) noexcept {
  for (std::uint64_t i = 0; i < d.memory_count; ++i) {
    const MemoryEntry& entry = d.memory.begin()[i];
    if (entry.bytes & kRelease) domain.retire(d.limbo, entry.block, free_counted, entry.bytes & ~kRelease);
  }
  d.memory_count = 0;
}

void undo(Descriptor& d) noexcept {
  while (d.memory_count > 0) {
    const MemoryEntry& entry = d.memory.begin()[--d.memory_count];
    if (!(entry.bytes & kRelease)) free_counted(entry.block);
  }
}

}  // namespace loam::tm::memory
