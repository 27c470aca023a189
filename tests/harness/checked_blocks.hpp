// CheckedBlocks: blocks of a heap that a test holds, and what each must contain.
//   Contents are written and looked at in full up to kWholeBytes, else at both ends. No block is lost: a failed
//   reallocation must leave the old one as it was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace loam::tests {

template <class Heap>
class CheckedBlocks {
 public:
  struct Block {
    std::byte* at;
    std::size_t bytes;
    std::size_t alignment;
    unsigned char value;
  };

  // All return whether the heap served.
  bool allocate(std::size_t bytes) { return add(Heap::allocate(bytes), bytes, 16); }
  bool allocate_aligned(std::size_t alignment, std::size_t bytes) {
    return add(Heap::allocate_aligned(alignment, bytes), bytes, alignment);
  }
  bool allocate_zeroed(std::size_t bytes) {
    void* const block = Heap::allocate_zeroed(bytes);
    if (block != nullptr && !is_all(static_cast<std::byte*>(block), bytes, 0)) wrong_ = "a zeroed block is not zero";
    return add(block, bytes, 16);
  }

  // The block keeps its place in the list, and its contents as far as both sizes go; its alignment need not stay.
  bool reallocate(std::size_t index, std::size_t bytes) {
    Block& block = blocks_[index];
    void* const moved = Heap::reallocate(block.at, bytes);
    if (moved == nullptr) return false;
    const std::size_t had = block.bytes;
    block.at = static_cast<std::byte*>(moved);
    const bool kept =
        bytes >= had ? holds(block) : is_all(block.at, is_long(had) ? std::min(bytes, kEndBytes) : bytes, block.value);
    if (!kept) wrong_ = "a block that was reallocated lost its contents";
    block.bytes = bytes;
    block.alignment = 16;
    look_at(block);
    fill(block);
    return true;
  }

  void free(std::size_t index) {
    check(index);
    Heap::deallocate(blocks_[index].at);
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }
  // In the order in which they came.
  void free_all() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) check(i);
    for (const Block& block : blocks_) Heap::deallocate(block.at);
    blocks_.clear();
  }

  // Takes over what another holds.
  void take(CheckedBlocks& other) {
    blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
    if (wrong_ == nullptr) wrong_ = other.wrong_;
    other.blocks_.clear();
  }

  std::size_t size() const { return blocks_.size(); }
  const Block& operator[](std::size_t index) const { return blocks_[index]; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Block& block : blocks_) sum += block.bytes;
    return sum;
  }

  // nullptr, or what was wrong with a block, now or earlier.
  const char* wrong() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) check(i);
    std::vector<Block> sorted = blocks_;
    std::sort(sorted.begin(), sorted.end(), [](const Block& a, const Block& b) { return a.at < b.at; });
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i - 1].at + std::max<std::size_t>(sorted[i - 1].bytes, 1) > sorted[i].at)
        wrong_ = "two blocks overlap";
    return wrong_;
  }

 private:
  static constexpr std::size_t kWholeBytes = 4096, kEndBytes = 64;

  bool add(void* at, std::size_t bytes, std::size_t alignment) {
    if (at == nullptr) return false;
    const Block block{static_cast<std::byte*>(at), bytes, alignment, ++values_};
    look_at(block);
    fill(block);
    blocks_.push_back(block);
    return true;
  }

  void look_at(const Block& block) {
    if (reinterpret_cast<std::uintptr_t>(block.at) % std::max<std::size_t>(block.alignment, 16) != 0)
      wrong_ = "a block is not aligned";
    if (Heap::usable_bytes(block.at) < block.bytes) wrong_ = "a block is shorter than asked for";
  }

  void check(std::size_t index) {
    if (!holds(blocks_[index])) wrong_ = "a block lost its contents";
  }

  static bool is_long(std::size_t bytes) { return bytes > kWholeBytes; }

  static void fill(const Block& block) {
    std::memset(block.at, block.value, is_long(block.bytes) ? kEndBytes : block.bytes);
    if (is_long(block.bytes)) std::memset(block.at + block.bytes - kEndBytes, block.value, kEndBytes);
  }
  static bool holds(const Block& block) {
    if (!is_long(block.bytes)) return is_all(block.at, block.bytes, block.value);
    return is_all(block.at, kEndBytes, block.value) &&
           is_all(block.at + block.bytes - kEndBytes, kEndBytes, block.value);
  }
  static bool is_all(const std::byte* start, std::size_t bytes, unsigned char value) {
    return std::all_of(start, start + bytes, [value](std::byte b) { return b == std::byte{value}; });
  }

  std::vector<Block> blocks_;
  const char* wrong_ = nullptr;
  unsigned char values_ = 0;
};

}  // namespace loam::tests
