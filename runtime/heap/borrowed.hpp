// Borrowed: blocks of other heaps that a thread freed and keeps for its own next requests.
//   Where threads pass blocks in both directions, a freed block lies in the cache of the thread that freed it: sent
//   home it would be fetched once more by its owner, and so would be the block that this thread takes instead.
//
//   Source: thread caches (Bonwick and Adams, USENIX 2001) keep all such blocks; here a class keeps none until its
//   thread ran out of blocks of the class after it had sent some home, and more each time that happens again. A thread
//   that only frees sends everything home. They serve when the thread's own blocks are used up, and in lots, since a
//   block alone shares lines with blocks of other threads (passive false sharing: Berger et al., Hoard, ASPLOS 2000).
//
//   Cost: a free is some stores; nobody walks a list.
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
  // returns false where the block is to be sent home.
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

  // What the thread may allocate from now that it has nothing else; none where that is too little.
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

  // All of them, and the class has learned nothing: for a thread that ends, or has no memory left.
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
