// Which block an address lies in, who made it, and where.
//   A block has its word in a shadow (../shadow.hpp), at its start.  An address is looked up by going back to the nearest
//   word; blocks that are too long for that stand in a table of their own, too.
//   A shadow has one word for 16 bytes, but some allocators place blocks of 8 bytes each 8 bytes (mimalloc, tcmalloc).  So
//   blocks that start in the upper half of such 16 bytes have a shadow of their own.
//   A look-up beside running threads is a sample: what comes and goes meanwhile may be missed.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "../shadow.hpp"
#include "sites.hpp"

namespace loam::interposer::sharing {

// bytes: as asked for; start: 0 where there is no block
struct Block {
  std::uintptr_t start = 0;
  std::uint64_t bytes = 0, thread = 0, site = 0;
};

class Blocks {
 public:
  static constexpr std::size_t kLong = 16 * 1024;  // from here on a block stands in the table

  // What a thread's blocks of one call stack have in common.
  enum class Maker : std::uint64_t {};

  static constexpr Maker maker(std::uint64_t thread, std::uint64_t site) noexcept {
    return Maker{site << (kThreadBits + kBytesBits) | (thread & kThreadMask) << kBytesBits};
  }

  void add(void* block, std::size_t bytes, Maker maker) noexcept {
    Shadow::Word* word = word_at(block, true);
    if (word == nullptr) return;
    // relaxed: who frees the block got it from this thread, in an order that the program made.
    word->store(static_cast<std::uint64_t>(maker) | std::min(bytes, kBytesMask), std::memory_order_relaxed);
    if (bytes >= kLong) [[unlikely]]
      add_long(reinterpret_cast<std::uintptr_t>(block), bytes);
  }

  // For most blocks, in a few instructions; false where add() is needed.
  [[gnu::always_inline]] bool add_short(void* block, std::size_t bytes, Maker maker) noexcept {
    Shadow::Word* word = word_at(block, false);
    if (word == nullptr || bytes >= kLong) [[unlikely]]
      return false;
    word->store(static_cast<std::uint64_t>(maker) | bytes, std::memory_order_relaxed);  // relaxed: as in add()
    return true;
  }

  // As remove(), in a few instructions; of a long block, and one that is not known, false, and nothing is done.
  [[gnu::always_inline]] bool remove_short(void* block) noexcept {
    Shadow::Word* word = word_at(block, false);
    if (word == nullptr) return false;
    const std::uint64_t known = word->load(std::memory_order_relaxed);  // relaxed: as in add()
    if (known == 0 || (known & kBytesMask) >= kLong) [[unlikely]]
      return false;
    word->store(0, std::memory_order_relaxed);
    return true;
  }

  // Whether it was known.
  bool remove(void* block) noexcept {
    if (remove_short(block)) return true;
    Shadow::Word* word = word_at(block, false);
    if (word == nullptr || word->load(std::memory_order_relaxed) == 0) return false;  // relaxed: as in add()
    word->store(0, std::memory_order_relaxed);
    remove_long(reinterpret_cast<std::uintptr_t>(block));
    return true;
  }

  Block find(std::uintptr_t address) noexcept {
    for (std::uintptr_t at = address & ~(kHalf - 1), steps = 0; steps <= kLong / kHalf; at -= kHalf, ++steps) {
      Shadow::Word* word = word_at(reinterpret_cast<void*>(at), false);
      if (word == nullptr) continue;
      const std::uint64_t known = word->load(std::memory_order_relaxed);  // relaxed: a sample
      if (known == 0) continue;
      const std::uint64_t bytes = known & kBytesMask;
      // Behind its end: padding, which belongs to nobody; of a block that is longer than the word can say, the table knows.
      if (bytes == kBytesMask || address - at >= bytes) break;
      return block_of(at, bytes, known);
    }
    for (const Long& one : long_) {
      const std::uintptr_t start = one.start.load(std::memory_order_acquire);  // blocks.A
      const std::uint64_t bytes = one.bytes.load(std::memory_order_relaxed);
      if (start == 0 || address - start >= bytes) continue;
      Shadow::Word* word = word_at(reinterpret_cast<void*>(start), false);
      const std::uint64_t known = word == nullptr ? 0 : word->load(std::memory_order_relaxed);
      if (known != 0) return block_of(start, bytes, known);
    }
    return {};
  }

 private:
  //   bits 63..44: site    bits 43..22: thread, as the kernel numbers it    bits 21..0: bytes, or more
  static constexpr unsigned kBytesBits = 22, kThreadBits = 22;
  static constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << kBytesBits) - 1,
                                 kThreadMask = (std::uint64_t{1} << kThreadBits) - 1;
  static_assert(kBytesBits + kThreadBits + kSiteBits == 64);

  // blocks.A: `start` is written last, and tells that `bytes` is there.
  struct Long {
    std::atomic<std::uintptr_t> start{0};
    std::atomic<std::uint64_t> bytes{0};
  };

  // No allocator places two blocks nearer to each other.
  static constexpr std::uintptr_t kHalf = (std::uintptr_t{1} << kGranuleBits) / 2;

  Shadow::Word* word_at(const void* block, bool make) noexcept {
    const bool upper = (reinterpret_cast<std::uintptr_t>(block) & kHalf) != 0;
    return (upper ? upper_ : shadow_).word(block, make);
  }

  static Block block_of(std::uintptr_t start, std::uint64_t bytes, std::uint64_t known) noexcept {
    return {start, bytes, known >> kBytesBits & kThreadMask, known >> (kBytesBits + kThreadBits)};
  }

  [[gnu::noinline]] void add_long(std::uintptr_t start, std::size_t bytes) noexcept {
    const Lock lock;
    for (std::size_t n = 0; n < kLongBlocks; ++n) {
      Long& one = long_[(next_ + n) % kLongBlocks];
      // relaxed: writers are ordered by Lock.
      if (one.start.load(std::memory_order_relaxed) != 0) continue;
      one.bytes.store(bytes, std::memory_order_relaxed);
      one.start.store(start, std::memory_order_release);  // blocks.A
      next_ = (next_ + n + 1) % kLongBlocks;
      return;
    }
  }

  [[gnu::noinline]] void remove_long(std::uintptr_t start) noexcept {
    const Lock lock;
    for (Long& one : long_)
      if (one.start.load(std::memory_order_relaxed) == start) {
        one.start.store(0, std::memory_order_relaxed);
        return;
      }
  }

  static constexpr std::size_t kLongBlocks = 4096;
  Shadow shadow_, upper_;
  Long long_[kLongBlocks];
  std::size_t next_ = 0;
};

}  // namespace loam::interposer::sharing
