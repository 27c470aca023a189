// The program's own operators, which count. Compiled without -fgnu-tm: they have no transactional clones.
#include <atomic>
#include <cstdlib>
#include <new>

namespace loam::tests {
std::atomic<long> blocks{0};  // of new that were not deleted
}

void* operator new(std::size_t bytes) {
  ++loam::tests::blocks;
  return std::malloc(bytes);
}
void operator delete(void* block) noexcept {
  if (block != nullptr) --loam::tests::blocks;
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
