// The entries of a transaction's logs, of fixed size.
#pragma once

#include "runtime/gc/object.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::gc {

// 4 bytes: an object in the heap's own address range that was free, and not newer than the snapshot, when it was
// enlisted for reading. Its transactional word need not be stored, because every later change gives the object a newer
// one.
struct ShortRead {
  std::uint32_t place;  // from the start of the heap, in steps of 8 bytes (O3)
};

// 16 bytes, for any other read: an object, and its transactional word when it was enlisted.
struct ReadEntry {
  Object* object;
  std::uint64_t word;
};

// 32 bytes: an object that was enlisted for update or made, its word before, and which of its words are in the undo log.
// An owned object's word leads to its entry.
struct UpdateEntry {
  static constexpr std::size_t kWords = 128;

  Object* object;
  std::uint64_t old;
  std::uint64_t logged[kWords / 64];
};

// 24 bytes: what a word of an object held.
struct UndoEntry {
  static constexpr std::uint64_t kReference = 1;

  bool is_reference() const noexcept { return (place & kReference) != 0; }
  std::size_t offset() const noexcept { return place & ~kReference; }

  Object* object;
  std::uint64_t place;  // offset in bytes, a multiple of 8; bit 0: it holds a reference
  std::uint64_t old;
};
static_assert(sizeof(ShortRead) == 4 && sizeof(ReadEntry) == 16 && sizeof(UpdateEntry) == 32 &&
              sizeof(UndoEntry) == 24);

}  // namespace loam::gc
