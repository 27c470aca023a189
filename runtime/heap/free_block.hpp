// FreeBlock: the two words of a free block that the heap uses, and how links are encoded.
//   link   the next block of the list, xor the key of the owner; never a plain pointer that a stray write could aim
//   mark   the key, while the block is free: what free() finds in the second word of a block that is freed twice
//   The key is the owner heap's address, so that encoding costs one instruction and no load. It tells apart accident
//   and order; against an attacker who reads freed memory stands the hardened composition.
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

// Makes the block free: linked and marked.
inline void put_before(FreeBlock* block, const FreeBlock* next, Key key) noexcept {
  block->mark = key;
  link_to(block, next, key);
}

}  // namespace loam::heap
