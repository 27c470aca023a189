// What tests of heaps share: hooks for a composition, and blocks that are filled and looked at.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/fault.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace loam::tests {

struct NoThreadsHook {
  static void attached() noexcept {}
};

// Ends the process with the fault's name and the class's bytes, for death tests.
struct DyingFaults {
  [[noreturn]] static void report(heap::Fault fault, const void*, std::size_t bytes, unsigned) noexcept {
    constexpr const char* kNames[] = {"foreign",    "interior",       "double free",
                                      "wrong size", "write past end", "use after free"};
    LOAM_FATAL("{} in a block of {} bytes", kNames[static_cast<unsigned>(fault)], bytes);
  }
};

template <class Heap>
std::byte* filled(std::size_t bytes, unsigned char value) {
  auto* const block = static_cast<std::byte*>(Heap::allocate(bytes));
  std::memset(block, value, bytes);
  return block;
}

inline bool holds(const std::byte* block, std::size_t bytes, unsigned char value) {
  return std::all_of(block, block + bytes, [value](std::byte b) { return b == std::byte{value}; });
}

}  // namespace loam::tests
