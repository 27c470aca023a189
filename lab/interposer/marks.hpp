// Which blocks were sampled, told in a few instructions of nearly all that were not.
//   A byte for each of 2^13 places; a block's address chooses its place. A place is marked as long as a sampled block that
//   lies there lives. The bytes are 8 KiB, a quarter of a small first-level cache: bits would be smaller, and take three
//   instructions more of each free.
//   Samples of one process are few, and take a lock: the mark of a place goes only with the last block of it.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::interposer {

// Taken for each sample and each free of a sampled block.
class Lock {
 public:
  Lock() noexcept {
    // acquire: pairs with the release in ~Lock (lock.A).
    while (taken.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Lock() { taken.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  // In a forked child, where no other thread lives.
  static void forget() noexcept { taken.clear(std::memory_order_relaxed); }

 private:
  static inline std::atomic_flag taken;
};

class Marks {
 public:
  static constexpr std::size_t kPlaces = std::size_t{1} << 13;

  // Whether the block may be a sampled one; false is certain.
  bool may_have(const void* block) const noexcept {
    // relaxed: who frees a block got it from who allocated it, in an order that the program made; its mark was set before.
    return marked_[place(block)].load(std::memory_order_relaxed);
  }

  // Of a block that was sampled just now.  Under Lock.
  void add(const void* block) noexcept {
    const std::size_t at = place(block);
    // relaxed: see may_have(); writers are ordered by Lock.
    if (blocks_[at]++ == 0) marked_[at].store(true, std::memory_order_relaxed);
  }

  // All that may lie in some memory, for ever: what has no mark goes straight to the allocator.
  void add_all(const char* memory, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += 16) add(memory + at);
  }

  // Of a sampled block that goes.  Under Lock.
  void remove(const void* block) noexcept {
    const std::size_t at = place(block);
    if (--blocks_[at] == 0) marked_[at].store(false, std::memory_order_relaxed);  // relaxed: as in add()
  }

 private:
  static std::size_t place(const void* block) noexcept {
    return reinterpret_cast<std::uintptr_t>(block) >> 4 & (kPlaces - 1);
  }

  std::atomic<bool> marked_[kPlaces] = {};
  std::uint32_t blocks_[kPlaces] = {};
};

}  // namespace loam::interposer
