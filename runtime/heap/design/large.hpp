// Large blocks of a design: each has a mapping of its own, which is unmapped when it is freed. Blocks whose alignment
// is above 16 bytes are handled in the same way.
#pragma once

#include "runtime/platform/pages.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::heap::design {

class LargeBlock {
 public:
  // alignment: a power of two
  static void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > PTRDIFF_MAX / 2 || alignment > PTRDIFF_MAX / 4) return nullptr;
    if (alignment < kHeaderBytes) alignment = kHeaderBytes;
    const std::size_t whole =
        (bytes + kHeaderBytes + alignment + platform::kPageBytes - 1) & ~(platform::kPageBytes - 1);
    auto* const start = static_cast<std::byte*>(platform::map_lazy(whole, {.huge_pages = false, .is_promised = true}));
    if (start == nullptr) return nullptr;
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(start);
    std::byte* const block = start + (((at + kHeaderBytes + alignment - 1) & ~(alignment - 1)) - at);
    *header_of(block) = {start, whole};
    return block;
  }
  static void release(void* block) noexcept {
    const Header header = *header_of(block);
    platform::unmap(header.start, header.bytes);
  }
  static std::size_t usable(const void* block) noexcept {
    const Header& header = *header_of(const_cast<void*>(block));
    return static_cast<std::size_t>(header.start + header.bytes - static_cast<const std::byte*>(block));
  }

 private:
  struct Header {
    std::byte* start;
    std::size_t bytes;
  };
  static constexpr std::size_t kHeaderBytes = 64;  // a cache line: blocks of these are aligned to one
  static Header* header_of(void* block) noexcept {
    return reinterpret_cast<Header*>(static_cast<std::byte*>(block) - sizeof(Header));
  }
};

}  // namespace loam::heap::design
