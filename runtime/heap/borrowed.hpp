// Borrowed: blocks of other heaps that a thread has freed and keeps for its own next requests.
//   A freed block is in the cache of the thread that freed it. If threads pass blocks in both directions, sending it to
//   its owner costs twice: the owner must fetch it, and this thread must fetch another block.
//
//   Source: thread caches (Bonwick and Adams, USENIX 2001) keep all such blocks. Here the limit of a class is zero at
//   first. It rises each time the thread runs out of blocks of the class after it has sent some to their owners. So a
//   thread that only frees sends all blocks to their owners. Borrowed blocks serve when the thread's own blocks are
//   used up. They serve in lots, because a single block shares cache lines with blocks of other threads (passive false
//   sharing: Berger et al., Hoard, ASPLOS 2000).
//
//   Cost: a free takes some stores; no list is walked.
//
//   When not: a thread that no longer asks for a class keeps at most kBytesMax of it until it ends.
//
//   W1 a class keeps at most its limit, linked with the borrower's key and marked with the owner's.
#pragma once

#include "runtime/heap/free_block.hpp"
#include "runtime/heap/size_classes.hpp"

#include <algorithm>
#include <array>

namespace loam::heap {

template <SizeClasses Classes>
class Borrowed {
 public:
  // returns false if the block must be sent to its owner.
  bool keep(unsigned c, FreeBlock* block, Key borrower, Key owner) noexcept {
    Kept& kept = kept_[c];
    if (kept.count == kept.limit) {
      kept.sent_home = true;
      return false;
    }
    block->mark = owner;
    link_to(block, kept.first, borrower);
    kept.first = block;
    ++kept.count;
    return true;
  }

  // The borrowed blocks of the class, from which the thread may allocate now; none if there are too few.
  BlockList take(unsigned c) noexcept {
    Kept& kept = kept_[c];
    if (kept.count * Classes::bytes_of(c) >= kLotBytes) {
      const BlockList all{kept.first, kept.count};
      kept.first = nullptr;
      kept.count = 0;
      return all;
    }
    if (kept.sent_home) kept.limit = std::clamp(2 * kept.limit, kLimitMin, limit_max(c));
    kept.sent_home = false;
    return {nullptr, 0};
  }

  // All borrowed blocks of the class, whose limit begins at zero again. For a thread that ends, or has no memory left.
  BlockList take_all(unsigned c) noexcept {
    const BlockList all = kept(c);
    kept_[c] = {};
    return all;
  }

  BlockList kept(unsigned c) const noexcept { return {kept_[c].first, kept_[c].count}; }

 private:
  static constexpr std::size_t kBytesMax = 64u << 10, kLotBytes = 4 * platform::kCacheLineBytes;
  static constexpr std::uint32_t kLimitMin = 16;

  static std::uint32_t limit_max(unsigned c) noexcept {
    return std::max(static_cast<std::uint32_t>(kBytesMax / Classes::bytes_of(c)), kLimitMin);
  }

  struct Kept {
    FreeBlock* first;
    std::uint32_t count, limit;
    bool sent_home;  // since take() last was here
  };

  std::array<Kept, Classes::kClasses> kept_{};
};

}  // namespace loam::heap
