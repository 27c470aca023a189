#include "runtime/tm/memory.hpp"

#include <new>

namespace loam::tm::memory {

void free_counted(void* block) {
  ++Descriptor::current().statistics.blocks_freed;
  std::free(block);
}

void out_of_memory() { throw std::bad_alloc(); }

void undo(Descriptor& d) noexcept {
  while (d.allocated_count > 0) free_counted(d.allocated.begin()[--d.allocated_count]);
  domain.withdraw(d.limbo);
}

}  // namespace loam::tm::memory
