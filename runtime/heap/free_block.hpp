// FreeBlock: the two words of a free block that the heap uses, and how links are encoded.
//   link   the key of the heap whose list it is, less the address of the next block; never a plain pointer that a
//          stray write could aim
//   mark   the key of the heap that owns the block, while it is free: what free() finds in the second word of a block
//          that is freed twice, in whosever list it is
//   The last block's link leads to its heap's end block, which nobody gets: what its own link says is negative, as no
//   address of a block is. So malloc reads one link to know both what comes next and whether there is a block at all.
//   A key is its heap's address, so that encoding costs one instruction and no load. It tells apart accident and order;
//   against an attacker who reads freed memory stands the hardened composition.
#pragma once

#include "runtime/heap/geometry.hpp"

namespace loam::heap {

// May alias: in the end block of a heap that the compiler makes, a pointer stands there.
using Link [[gnu::may_alias]] = std::uintptr_t;

struct FreeBlock {
  Link link;
  std::uintptr_t mark;
};
static_assert(sizeof(FreeBlock) == kBlockAlignment, "the shortest block holds it");

using Key = std::uintptr_t;

// A heap's end block lies so many bytes behind its address.
inline constexpr std::uintptr_t kEnd = 1024;

// What a link says: the next block's address, or, read as signed, a negative number for the end.
[[gnu::always_inline]] inline std::uintptr_t decoded(Link link, Key key) noexcept { return key - link; }
[[gnu::always_inline]] inline Link encoded(std::uintptr_t next, Key key) noexcept { return key - next; }

// nullptr: the block is the last one.
inline FreeBlock* next_of(const FreeBlock* block, Key key) noexcept {
  return block->link == -kEnd ? nullptr : reinterpret_cast<FreeBlock*>(decoded(block->link, key));
}
// next: nullptr where there is none.
inline void link_to(FreeBlock* block, const FreeBlock* next, Key key) noexcept {
  block->link = next == nullptr ? -kEnd : encoded(address_of(next), key);
}

struct BlockList {
  FreeBlock* first;  // nullptr: none
  std::uint32_t count;
};

// Makes the block free: linked and marked, in a list of its owner.
inline void put_before(FreeBlock* block, const FreeBlock* next, Key key) noexcept {
  block->mark = key;
  link_to(block, next, key);
}

}  // namespace loam::heap
