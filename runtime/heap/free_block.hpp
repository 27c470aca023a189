// FreeBlock: the two words of a free block that the heap uses, and how links are encoded.
//   link   the next block of the list, xor the key of the heap whose list it is; never a plain pointer that a stray
//          write could aim
//   mark   the key of the heap that owns the block, while it is free: what free() finds in the second word of a block
//          that is freed twice, in whosever list it is
//   A key is its heap's address, so that encoding costs one instruction and no load. It tells apart accident and order;
//   against an attacker who reads freed memory stands the hardened composition.
#pragma once

#include "runtime/heap/geometry.hpp"

namespace loam::heap {

struct FreeBlock {
  std::uintptr_t link, mark;
};
static_assert(sizeof(FreeBlock) == kBlockAlignment, "the shortest block holds it");

using Key = std::uintptr_t;

inline FreeBlock* next_of(const FreeBlock* block, Key key) noexcept {
  return reinterpret_cast<FreeBlock*>(block->link ^ key);
}
inline void link_to(FreeBlock* block, const FreeBlock* next, Key key) noexcept { block->link = address_of(next) ^ key; }

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
