// FreeBlock: the two words of a free block that the heap uses, and the encoding of links.
//   link   the key of the heap that has the block in a list, minus the address of the next block. It is never a plain
//          pointer, so a stray write cannot redirect it easily.
//   mark   the key of the heap that owns the block, while the block is free. By it free() recognises a block that is
//          freed twice, in any heap's list.
//   The last block's link leads to the heap's end block, which is never handed out. The link of the end block decodes
//   to a negative number, and the address of a block never is negative. So malloc reads one link to learn both the next
//   block and whether there is a block at all.
//   A key is its heap's address, so encoding costs one instruction and no load. The encoding detects accidents. Against
//   an attacker who reads freed memory, use the hardened mode.
#pragma once

#include "runtime/heap/geometry.hpp"

namespace loam::heap {

// May alias: the end block of a heap that the compiler initialises has a pointer there.
using Link [[gnu::may_alias]] = std::uintptr_t;

struct FreeBlock {
  Link link;
  std::uintptr_t mark;
};
static_assert(sizeof(FreeBlock) == kBlockAlignment, "the shortest block holds it");

using Key = std::uintptr_t;

// A heap's end block lies so many bytes behind its address.
inline constexpr std::uintptr_t kEnd = 1024;

// The decoded link: the next block's address, or, as a signed number, a negative one for the end.
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
