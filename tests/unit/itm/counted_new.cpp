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

#ifdef LOAM_ASAN
// Its own new[] would not call what stands above, and libstdc++ frees by delete what the clones of its exceptions have
// from new[].
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { operator delete(block); }

// Blocks that transactions have freed wait for who may still read them, in pages where no leak is looked for.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif
