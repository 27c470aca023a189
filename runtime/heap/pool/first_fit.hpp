// FirstFit: memory as one list of free chunks in the order of their addresses: paper 003's sequential fits.
//   take  searches the list from its start for the first chunk that is long enough, cuts the block from its front, and
//         leaves the remainder in the list.
//   give  returns a chunk to the list, and joins it with neighbours that are free.
//   Cost      take walks along the list. give begins its walk at the free chunk nearest below that an index of 16 KiB pieces
//             of the region names; without the index it walks from the start.
//   When not  many free chunks of different sizes: each call walks past them.
//   Not thread-safe: its owner has to guard it.
//   F1 the chunks ascend, and no two touch.   F2 bytes() is the sum of their lengths.
//   F3 the index names the first chunk that begins in each piece.
#pragma once

#include "runtime/base/check.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::heap::pool {

inline constexpr std::size_t kAlignment = 16;

// In front of each block, used or free. Blocks are multiples of 16; so chunks begin 8 bytes before one.
struct Chunk {
  std::size_t bytes;  // this word included
  Chunk* next;        // of a free one; of a used one, the block begins here

  std::byte* start() noexcept { return reinterpret_cast<std::byte*>(this); }
  std::byte* end() noexcept { return start() + bytes; }
  void* block() noexcept { return &next; }
  static Chunk* of(void* block) noexcept {
    return reinterpret_cast<Chunk*>(static_cast<std::byte*>(block) - offsetof(Chunk, next));
  }
};
inline constexpr std::size_t kHeaderBytes = offsetof(Chunk, next);
inline constexpr std::size_t kChunkBytesMin = sizeof(Chunk);
static_assert(kHeaderBytes == 8 && kChunkBytesMin == kAlignment);

// The chunk that serves a request; 0 where there can be none.
constexpr std::size_t chunk_bytes(std::size_t bytes) noexcept {
  if (bytes > PTRDIFF_MAX - kAlignment * 2) return 0;
  const std::size_t whole = (bytes + kHeaderBytes + kAlignment - 1) & ~(kAlignment - 1);
  return whole < kChunkBytesMin ? kChunkBytesMin : whole;
}
static_assert(chunk_bytes(0) == 16 && chunk_bytes(8) == 16 && chunk_bytes(9) == 32 && chunk_bytes(24) == 32);

class FirstFit {
 public:
  // index: one zeroed entry for each piece of the region that begins at `base`. Without this call there is no index.
  static constexpr std::size_t kPieceBytes = 16384;
  void use_index(const std::byte* base, Chunk** index) noexcept {
    base_ = base;
    index_ = index;
  }

  // bytes: of the chunk. returns nullptr where no free chunk is that long
  Chunk* take(std::size_t bytes) noexcept {
    for (Chunk** link = &first_; *link != nullptr; link = &(*link)->next) {
      Chunk* const found = *link;
      if (found->bytes < bytes) continue;
      forget(found);
      if (found->bytes == bytes) {
        *link = found->next;
      } else {
        auto* const rest = reinterpret_cast<Chunk*>(found->start() + bytes);
        rest->bytes = found->bytes - bytes;
        rest->next = found->next;
        *link = rest;
        found->bytes = bytes;
        note(rest);
      }
      bytes_ -= bytes;
      return found;
    }
    return nullptr;
  }

  void give(Chunk* chunk) noexcept {
    bytes_ += chunk->bytes;
    Chunk* before = near_below(chunk);
    Chunk* behind = before != nullptr ? before->next : first_;
    while (behind != nullptr && behind < chunk) {
      before = behind;
      behind = behind->next;
    }
    LOAM_ASSERT(before == nullptr || before->end() <= chunk->start(), "F1: {} lies in a free chunk", chunk);
    place(before, chunk, behind);
  }

  // All that another list has, in one walk.
  void give_all(FirstFit& other) noexcept {
    bytes_ += other.bytes_;
    Chunk *before = nullptr, *behind = first_;
    for (Chunk* chunk = other.first_; chunk != nullptr;) {
      Chunk* const following = chunk->next;
      other.forget(chunk);
      while (behind != nullptr && behind < chunk) {
        before = behind;
        behind = behind->next;
      }
      before = place(before, chunk, behind);
      behind = before->next;
      chunk = following;
    }
    other.first_ = nullptr;
    other.bytes_ = 0;
  }

  std::size_t bytes() const noexcept { return bytes_; }
  const Chunk* first() const noexcept { return first_; }

  std::size_t longest() const noexcept {
    std::size_t most = 0;
    for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next)
      if (chunk->bytes > most) most = chunk->bytes;
    return most;
  }

  void verify() const noexcept {
    std::size_t sum = 0;
    for (Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
      LOAM_CHECK(chunk->bytes >= kChunkBytesMin && chunk->bytes % kAlignment == 0, "F1: a chunk of {}", chunk->bytes);
      LOAM_CHECK(chunk->next == nullptr || chunk->end() < chunk->next->start(), "F1: {} is followed by {}", chunk,
                 chunk->next);
      const Chunk* const named = index_ == nullptr ? chunk : index_[piece_of(chunk)];
      LOAM_CHECK(named != nullptr && named <= chunk, "F3: {} is not found by the index", chunk);
      sum += chunk->bytes;
    }
    LOAM_CHECK(sum == bytes_, "F2: {} bytes counted, {} found", bytes_, sum);
  }

 private:
  // Between two neighbours of the list. returns the chunk that it is a part of now
  Chunk* place(Chunk* before, Chunk* chunk, Chunk* behind) noexcept {
    if (behind != nullptr && chunk->end() == behind->start()) {
      forget(behind);
      chunk->bytes += behind->bytes;
      behind = behind->next;
    }
    chunk->next = behind;
    if (before == nullptr) {
      first_ = chunk;
      note(chunk);
      return chunk;
    }
    if (before->end() == chunk->start()) {
      before->bytes += chunk->bytes;
      before->next = behind;
      return before;
    }
    before->next = chunk;
    note(chunk);
    return chunk;
  }

  std::size_t piece_of(const Chunk* chunk) const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(chunk) - base_) / kPieceBytes;
  }
  // The chunk comes to the list.
  void note(Chunk* chunk) noexcept {
    if (index_ == nullptr) return;
    Chunk*& named = index_[piece_of(chunk)];
    if (named == nullptr || chunk < named) named = chunk;
  }
  // The chunk goes; its `next` is still the one behind it.
  void forget(Chunk* chunk) noexcept {
    if (index_ == nullptr) return;
    const std::size_t piece = piece_of(chunk);
    if (index_[piece] != chunk) return;
    index_[piece] = chunk->next != nullptr && piece_of(chunk->next) == piece ? chunk->next : nullptr;
  }
  // A chunk of the list below this one, near it; nullptr: begin at the start.
  Chunk* near_below(const Chunk* chunk) const noexcept {
    if (index_ == nullptr || first_ == nullptr || first_ >= chunk) return nullptr;
    for (std::size_t piece = piece_of(chunk); piece > piece_of(first_); --piece)
      if (index_[piece] != nullptr && index_[piece] < chunk) return index_[piece];
    return first_;
  }

  Chunk* first_ = nullptr;
  std::size_t bytes_ = 0;
  const std::byte* base_ = nullptr;
  Chunk** index_ = nullptr;
};

}  // namespace loam::heap::pool
