// cpp_interface: operator new and delete of Loam's malloc.
#include "runtime/malloc/entry.hpp"

namespace {

struct Blocks : loam::malloc::Heap {
  static constexpr const char* kName = "loam malloc";
  static void deallocate_aligned_sized(void* block, std::size_t alignment, std::size_t bytes) noexcept {
    loam::malloc::deallocate_aligned_sized(block, alignment, bytes);
  }
  static void* serve_caller(const void* caller) noexcept { return loam::malloc::serve_caller(caller); }
};

}  // namespace

#include "runtime/malloc/operators.hpp"
