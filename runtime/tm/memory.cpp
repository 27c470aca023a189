#include "runtime/tm/memory.hpp"

#include <new>

namespace loam::tm::memory {

void free_counted(void* block) {
  ++Descriptor::current_or_detached().statistics.blocks_freed;
  std::free(block);
}

void out_of_memory() { throw std::bad_alloc(); }

void undo_to(Descriptor& d, std::uint64_t count) noexcept {
  while (d.allocated_count > count) free_counted(d.allocated.begin()[--d.allocated_count]);
}

void undo(Descriptor& d) noexcept {
  undo_to(d, 0);
  domain.withdraw(d.limbo);
}

}  // namespace loam::tm::memory
