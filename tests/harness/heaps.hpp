// What tests of heaps share: hooks for a composition, blocks that are filled and looked at, and threads that end.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/fault.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {

struct NoThreadsHook {
  static void attached() noexcept {}
};

// Ends the process with the fault's name and the class's bytes, for death tests.
struct DyingFaults {
  [[noreturn]] static void report(heap::Fault fault, const void*, std::size_t bytes, unsigned) noexcept {
    constexpr const char* kNames[] = {"foreign",        "interior",           "double free",   "wrong size",
                                      "write past end", "write before start", "use after free"};
    LOAM_FATAL("{} in a block of {} bytes", kNames[static_cast<unsigned>(fault)], bytes);
  }
};

template <class Heap>
std::byte* filled(std::size_t bytes, unsigned char value) {
  auto* const block = static_cast<std::byte*>(Heap::allocate(bytes));
  std::memset(block, value, bytes);
  return block;
}

template <class Heap>
std::vector<std::byte*> filled_blocks(std::size_t count, std::size_t bytes, unsigned char value) {
  std::vector<std::byte*> blocks(count);
  for (auto& block : blocks) block = filled<Heap>(bytes, value);
  return blocks;
}

template <class Heap>
void free_all(const std::vector<std::byte*>& blocks) {
  for (std::byte* const block : blocks) Heap::deallocate(block);
}

// The first byte is right, and each is as the one before it: memcmp, because a loop over 80 MiB takes a minute with the
// thread sanitizer.
inline bool holds(const std::byte* block, std::size_t bytes, unsigned char value) {
  return bytes == 0 || (block[0] == std::byte{value} && std::memcmp(block, block + 1, bytes - 1) == 0);
}

// "", or the name of an invariant that does not hold. Only while no other thread allocates or frees.
template <class Heap>
std::string verified() {
  const char* const broken = Heap::verify();
  return broken == nullptr ? "" : broken;
}

// Runs a thread to its end, with its heap handed over.
template <class Heap, class Body>
void in_a_thread(Body body) {
  std::thread([&body] {
    body();
    Heap::thread_exit();
  }).join();
}

}  // namespace loam::tests
