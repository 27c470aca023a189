// ClosedBlocks: free long blocks of a hardened heap, each with its inaccessible guard page, in the order in which they
// were freed. Opening and closing a page are two system calls. A program that frees a buffer and requests one of the
// same length, again and again, would spend much of its time there.
//   A request gets a block whose length fits to within a unit, the one that has waited longest; never the one that was
//   freed last, to which a pointer may have been left behind. The list holds up to
//   kMax blocks of up to kBytesMax together, for all threads; a new block removes the oldest ones if there is no room.
//   Cost: a lock, and a walk over up to kMax entries.
//   C1 every block is zero.
//   C2 the bytes held are the sum over the blocks, at most kBytesMax.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>

namespace loam::heap {

class ClosedBlocks {
 public:
  struct Block {
    void* start;  // nullptr: none
    std::size_t usable_bytes;
  };
  static constexpr std::size_t kMax = 16, kBytesMax = std::size_t{8} << 20, kBlockBytesMax = std::size_t{2} << 20;

  // A block of at least that many usable bytes, and hardly more.
  Block take(std::size_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    for (std::size_t i = 0; i + 1 < count_; ++i)
      if (blocks_[i].usable_bytes >= bytes && blocks_[i].usable_bytes - bytes <= kUnitBytes) return remove(i);
    return {nullptr, 0};
  }

  // Puts a block of up to kBlockBytesMax behind the others. give(start): one that has to go for it.
  template <class Give>
  void put(Block block, Give give) noexcept {
    for (;;) {
      Block oldest;
      {
        const std::lock_guard guard(lock_);
        if (count_ < kMax && bytes_ + block.usable_bytes <= kBytesMax) {
          blocks_[count_++] = block;
          bytes_ += block.usable_bytes;
          return;
        }
        oldest = remove(0);
      }
      give(oldest.start);
    }
  }

  // give(start), of all of them. returns whether there were any
  template <class Give>
  bool give_all(Give give) noexcept {
    bool any = false;
    for (Block oldest; (oldest = take_oldest()).start != nullptr; any = true) give(oldest.start);
    return any;
  }

  template <class Visit>
  void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (const Block& block : std::span(blocks_).first(count_)) visit(block);
  }

  // Call it in the child of a fork. If another thread of the parent was changing the list, its blocks are lost.
  void mend_in_child() noexcept {
    if (!lock_.is_orphaned()) return;
    count_ = bytes_ = 0;
    lock_.unlock();
  }

  // nullptr, or the invariant that does not hold. zero(block): whether it is.
  template <class Zero>
  const char* verify(Zero zero) noexcept {
    const std::lock_guard guard(lock_);
    std::size_t sum = 0;
    for (const Block& block : std::span(blocks_).first(count_)) {
      if (!zero(block)) return "C1: a closed block is zero";
      sum += block.usable_bytes;
    }
    return sum == bytes_ && sum <= kBytesMax ? nullptr : "C2: the bytes held are those of the blocks";
  }

 private:
  Block take_oldest() noexcept {
    const std::lock_guard guard(lock_);
    return count_ == 0 ? Block{nullptr, 0} : remove(0);
  }

  Block remove(std::size_t i) noexcept {
    const Block found = blocks_[i];
    std::copy(blocks_.begin() + i + 1, blocks_.begin() + count_, blocks_.begin() + i);
    --count_;
    bytes_ -= found.usable_bytes;
    return found;
  }

  sync::OwnedLock lock_;
  std::size_t count_ = 0, bytes_ = 0;
  std::array<Block, kMax> blocks_{};
};

}  // namespace loam::heap
