// Memory of the model: one reservation of addresses, which is handed out in order and never freed.
//
// The kernel gives the program's mappings the highest free addresses, so a later mapping of the model would move them.
// So the model maps all its memory in one reservation at the beginning, if possible at addresses far from the
// program's.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/platform/pages.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace loam::simulator {

class Arena {
 public:
  Arena() noexcept {
    // Huge pages: the caches of many cores are megabytes that are used in any order.
    constexpr platform::MapOptions kSparse{.huge_pages = true, .core_dump = false};
#ifndef LOAM_INSTRUMENTED
    // Above what map_lazy_at() promises to others, and far below libraries and stacks.
    constexpr std::uintptr_t kFrom = std::uintptr_t{16} << 40, kTo = std::uintptr_t{32} << 40;
    for (std::uintptr_t at = kFrom; at < kTo && start_ == nullptr; at += std::uintptr_t{1} << 40) {
      void* const wanted = reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr)
      if (platform::map_lazy_at(wanted, kBytes, kSparse) == platform::MapResult::done)
        start_ = static_cast<char*>(wanted);
    }
#endif
    for (bytes_ = kBytes; start_ == nullptr && bytes_ > kLeastBytes; bytes_ /= 2)
      if (void* const found = platform::map_lazy(bytes_, kSparse)) {
        start_ = static_cast<char*>(found);
        break;
      }
    LOAM_CHECK(start_ != nullptr, "the simulated machine needs {} MiB of addresses; raise the limit (ulimit -v)",
               kLeastBytes >> 20);
    platform::advise_huge_pages(start_, bytes_, true);
  }
  ~Arena() { platform::unmap(start_, bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zeroed memory at the beginning of a cache line of the host.
  void* bytes(std::size_t count) noexcept {
    count = (count + 63) & ~std::size_t{63};
    LOAM_CHECK(count <= bytes_ - used_, "the simulated machine has used up its {} MiB of addresses", bytes_ >> 20);
    return start_ + std::exchange(used_, used_ + count);
  }

  // An array whose elements are made by their default constructor.
  template <class Type>
  Type* array(std::size_t count) noexcept {
    auto* const first = static_cast<Type*>(bytes(count * sizeof(Type)));
    for (std::size_t i = 0; i < count; ++i) new (first + i) Type;
    return first;
  }

  // An array of numbers or pointers that are all zero, backed where it is touched.
  template <class Type>
  Type* zeros(std::size_t count) noexcept {
    return static_cast<Type*>(bytes(count * sizeof(Type)));
  }

  std::size_t used() const noexcept { return used_; }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 30;
  static constexpr std::size_t kLeastBytes = std::size_t{256} << 20;

  char* start_ = nullptr;
  std::size_t bytes_ = kBytes;
  std::size_t used_ = 0;
};

}  // namespace loam::simulator
