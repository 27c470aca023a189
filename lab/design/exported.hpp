// What a library of this folder defines, so that exported.cpp can make malloc and its kin of it, and operators.cpp operator new.
//   All may be called by any thread at any time; none sets errno.
#pragma once

#include <cstddef>

namespace loam::design {

// alignment: a power of two; blocks of 16 bytes and more are multiples of 16 anyway. returns nullptr without memory
void* allocate(std::size_t bytes) noexcept;
void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept;
void release(void* block) noexcept;  // not nullptr
std::size_t usable(const void* block) noexcept;
// Whether memory that allocate() returns for this size is zero already.
bool is_zeroed(std::size_t bytes) noexcept;

constexpr std::size_t kMallocAlignment = 16;

// alignment: any power of two
inline void* allocate_multiple(std::size_t alignment, std::size_t bytes) noexcept {
  return alignment <= kMallocAlignment ? allocate(bytes < alignment ? alignment : bytes)
                                       : allocate_aligned(alignment, bytes);
}

}  // namespace loam::design
