// malloc and its kin over exported.hpp.
#include "lab/design/exported.hpp"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define LOAM_SHOWN extern "C" [[gnu::visibility("default")]]

namespace {

using loam::design::allocate_multiple;
using loam::design::kMallocAlignment;

constexpr std::size_t kPage = 4096;

void* or_error(void* block) noexcept {
  if (block == nullptr) [[unlikely]]
    errno = ENOMEM;
  return block;
}

}  // namespace

LOAM_SHOWN void* malloc(std::size_t bytes) { return or_error(loam::design::allocate(bytes)); }

LOAM_SHOWN void free(void* block) {
  if (block == nullptr) return;
  const int before = errno;
  loam::design::release(block);
  errno = before;
}

LOAM_SHOWN void* calloc(std::size_t count, std::size_t each) {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = or_error(loam::design::allocate(bytes));
  if (block != nullptr && !loam::design::is_zeroed(bytes)) std::memset(block, 0, bytes);
  return block;
}

LOAM_SHOWN std::size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : loam::design::usable(block); }

LOAM_SHOWN void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return or_error(loam::design::allocate(bytes));
  if (bytes == 0) {
    loam::design::release(block);
    return nullptr;
  }
  const std::size_t has = loam::design::usable(block);
  if (bytes <= has && bytes > has / 4) return block;
  void* const moved = or_error(loam::design::allocate(bytes));
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, bytes < has ? bytes : has);
  loam::design::release(block);
  return moved;
}

LOAM_SHOWN void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return or_error(allocate_multiple(alignment, bytes));
}

LOAM_SHOWN void* memalign(std::size_t alignment, std::size_t bytes) {
  return or_error(
      allocate_multiple(alignment <= kMallocAlignment ? kMallocAlignment : std::bit_ceil(alignment), bytes));
}
LOAM_SHOWN void* valloc(std::size_t bytes) { return or_error(allocate_multiple(kPage, bytes)); }
LOAM_SHOWN void* pvalloc(std::size_t bytes) {
  return or_error(allocate_multiple(kPage, (bytes + kPage - 1) / kPage * kPage));
}

LOAM_SHOWN int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (alignment < sizeof(void*) || !std::has_single_bit(alignment)) return EINVAL;
  void* const block = allocate_multiple(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
