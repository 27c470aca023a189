// operator new and delete over exported.hpp: a program that was linked with another allocator, as Debian's redis is with
// jemalloc, would otherwise take that one's.
#include "lab/design/exported.hpp"

namespace {

struct Blocks {
  static constexpr const char* kName = "loam design";
  static void* allocate(std::size_t bytes) noexcept { return loam::design::allocate(bytes); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return loam::design::allocate_multiple(alignment, bytes);
  }
  static void deallocate(void* block) noexcept {
    if (block != nullptr) loam::design::release(block);
  }
  static void deallocate_sized(void* block, std::size_t) noexcept { deallocate(block); }
  static void deallocate_aligned_sized(void* block, std::size_t, std::size_t) noexcept { deallocate(block); }
};

}  // namespace

#define LOAM_MALLOC_ENTRY gnu::aligned(64)
#define LOAM_FREE_ENTRY gnu::aligned(64)
#include "runtime/malloc/operators.hpp"
