// CheckedBlocks: blocks of a heap that a test holds, and what each must contain.
//   Contents are written and looked at in full up to kWholeBytes, else at both ends. No block is lost: a failed
//   reallocation must leave the old one as it was.
#pragma once

#include "tests/harness/heaps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace loam::tests {

// kExact: the heap's usable_bytes() says what was asked for.
template <class Heap, bool kExact = false>
class CheckedBlocks {
 public:
  static constexpr std::size_t kHugeBytes = std::size_t{8} << 20;  // no test asks for what lies between these two kinds

  struct Block {
    std::byte* at;
    std::size_t bytes;
    std::size_t alignment;
    unsigned char value;
    bool plain;  // from allocate(), with these bytes: may be freed with its size
  };

  // All return whether the heap served.
  bool allocate(std::size_t bytes) { return add(Heap::allocate(bytes), bytes, 16, true); }
  bool allocate_aligned(std::size_t alignment, std::size_t bytes) {
    return add(Heap::allocate_aligned(alignment, bytes), bytes, alignment);
  }
  bool allocate_zeroed(std::size_t bytes) {
    void* const block = Heap::allocate_zeroed(bytes);
    if (block != nullptr && !holds(static_cast<std::byte*>(block), bytes, 0)) wrong_ = "a zeroed block is not zero";
    return add(block, bytes, 16);
  }

  // The block keeps its place in the list, and its contents as far as both sizes go; its alignment need not stay.
  bool reallocate(std::size_t index, std::size_t bytes) {
    Block& block = blocks_[index];
    void* const moved = Heap::reallocate(block.at, bytes);
    if (moved == nullptr) return false;
    const std::size_t had = block.bytes;
    count(had, false);
    count(bytes, true);
    block.at = static_cast<std::byte*>(moved);
    const bool kept = bytes >= had ? is_whole(block)
                                   : holds(block.at, is_long(had) ? std::min(bytes, kEndBytes) : bytes, block.value);
    if (!kept) wrong_ = "a block that was reallocated lost its contents";
    block.bytes = bytes;
    block.alignment = 16;
    block.plain = false;
    look_at(block);
    fill(block);
    return true;
  }

  void free(std::size_t index) {
    check(index);
    Heap::deallocate(blocks_[index].at);
    drop(index);
  }
  // With its size, where that may be told.
  void free_sized(std::size_t index) {
    if (!blocks_[index].plain) return free(index);
    check(index);
    Heap::deallocate_sized(blocks_[index].at, blocks_[index].bytes);
    drop(index);
  }
  // In the order in which they came.
  void free_all() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) check(i);
    for (const Block& block : blocks_) Heap::deallocate(block.at);
    forget_all();
  }

  // Takes over what another holds.
  void take(CheckedBlocks& other) {
    blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
    if (wrong_ == nullptr) wrong_ = other.wrong_;
    bytes_ += other.bytes_;
    huge_ += other.huge_;
    other.forget_all();
  }

  std::size_t size() const { return blocks_.size(); }
  const Block& operator[](std::size_t index) const { return blocks_[index]; }
  // Of the blocks that areas serve: those of kHugeBytes and more have mappings of their own.
  std::size_t bytes() const { return bytes_; }
  std::size_t huge_blocks() const { return huge_; }

  // nullptr, or what was wrong with a block, now or earlier.
  const char* wrong() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) check(i);
    for (const Block& block : blocks_) look_at(block);
    std::vector<Block> sorted = blocks_;
    std::sort(sorted.begin(), sorted.end(), [](const Block& a, const Block& b) { return a.at < b.at; });
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i - 1].at + std::max<std::size_t>(sorted[i - 1].bytes, 1) > sorted[i].at)
        wrong_ = "two blocks overlap";
    return wrong_;
  }

 private:
  static constexpr std::size_t kWholeBytes = 4096, kEndBytes = 64;

  void count(std::size_t bytes, bool more) {
    std::size_t& sum = bytes >= kHugeBytes ? huge_ : bytes_;
    const std::size_t by = bytes >= kHugeBytes ? 1 : bytes;
    sum = more ? sum + by : sum - by;
  }
  void forget_all() {
    blocks_.clear();
    bytes_ = huge_ = 0;
  }

  void drop(std::size_t index) {
    count(blocks_[index].bytes, false);
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  bool add(void* at, std::size_t bytes, std::size_t alignment, bool plain = false) {
    if (at == nullptr) return false;
    const Block block{static_cast<std::byte*>(at), bytes, alignment, ++values_, plain};
    look_at(block);
    fill(block);
    blocks_.push_back(block);
    count(bytes, true);
    return true;
  }

  void look_at(const Block& block) {
    if (reinterpret_cast<std::uintptr_t>(block.at) % std::max<std::size_t>(block.alignment, 16) != 0)
      wrong_ = "a block is not aligned";
    const std::size_t usable = Heap::usable_bytes(block.at);
    if (usable < block.bytes) wrong_ = "a block is shorter than asked for";
    if (kExact && usable > block.bytes) wrong_ = "a block is longer than asked for";
  }

  void check(std::size_t index) {
    if (!is_whole(blocks_[index])) wrong_ = "a block lost its contents";
  }

  static bool is_long(std::size_t bytes) { return bytes > kWholeBytes; }

  static void fill(const Block& block) {
    std::memset(block.at, block.value, is_long(block.bytes) ? kEndBytes : block.bytes);
    if (is_long(block.bytes)) std::memset(block.at + block.bytes - kEndBytes, block.value, kEndBytes);
  }
  static bool is_whole(const Block& block) {
    if (!is_long(block.bytes)) return holds(block.at, block.bytes, block.value);
    return holds(block.at, kEndBytes, block.value) && holds(block.at + block.bytes - kEndBytes, kEndBytes, block.value);
  }

  std::vector<Block> blocks_;
  std::size_t bytes_ = 0, huge_ = 0;
  const char* wrong_ = nullptr;
  unsigned char values_ = 0;
};

}  // namespace loam::tests
