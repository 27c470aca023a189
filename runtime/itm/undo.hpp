// undo: the old values of private data that an attempt changed: local variables, new blocks, exceptions; and the
// program's own undo actions.
//   Invariant  U1  a value in a frame that has ended is not restored, because other data may lie there now.
#pragma once

#include "runtime/tm/logs/log.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace loam::itm {

class UndoLog {
 public:
  struct Entry {
    enum class Kind : std::uint8_t { value, action, block, nothing };
    void* address;        // of the value or the block; an action's argument
    void (*call)(void*);  // an action; what frees the block
    std::uint32_t bytes;  // of the value
    Kind kind;
    bool in_frames;  // the value lay on the stack below where the transaction began
    std::byte value[32];
  };

  void reserve() noexcept { log_.reserve(std::size_t{1} << 22, 0, "log of private changes"); }

  std::size_t size() const noexcept { return size_; }
  // Where the entries of the transaction begin: behind those of one whose undo actions run now.
  std::size_t first() const noexcept { return first_; }

  void note_value(const void* address, std::size_t bytes, bool in_frames) noexcept {
    auto* at = static_cast<const std::byte*>(address);
    while (bytes != 0) {
      const std::size_t some = std::min(bytes, sizeof Entry::value);
      Entry& entry = add(Entry::Kind::value, const_cast<std::byte*>(at), nullptr);
      entry.bytes = static_cast<std::uint32_t>(some);
      entry.in_frames = in_frames;
      std::memcpy(entry.value, at, some);
      at += some;
      bytes -= some;
    }
  }
  void note_action(void (*call)(void*), void* argument) noexcept { add(Entry::Kind::action, argument, call); }
  // It is freed if the attempt aborts.
  void note_block(void* block, void (*free)(void*)) noexcept { add(Entry::Kind::block, block, free); }
  // The block belongs to another owner now, or was freed: an abort need not free it.
  void forget_block(const void* block) noexcept {
    for (std::size_t i = size_; i > first_; --i) {
      Entry& entry = log_.begin()[i - 1];
      if (entry.kind == Entry::Kind::block && entry.address == block) return void(entry.kind = Entry::Kind::nothing);
    }
  }

  // What lay in a range that is gone does not go back.
  template <class Range>
  void forget_values(const Range& range) noexcept {
    for (std::size_t i = size_; i > first_; --i) {
      Entry& entry = log_.begin()[i - 1];
      if (entry.kind == Entry::Kind::value && range.holds(reinterpret_cast<std::uintptr_t>(entry.address)))
        entry.kind = Entry::Kind::nothing;
    }
  }

  // Undoes the values alone that were noted after the first `mark` entries. stack: frames below it have ended. As in GCC's
  // library the program's actions come after them: an action must not see a value that is still to be undone.
  void take_back_values(std::size_t mark, std::uintptr_t stack) noexcept {
    for (std::size_t i = size_; i > mark; --i) {
      Entry& entry = log_.begin()[i - 1];
      if (entry.kind != Entry::Kind::value) continue;
      restore(entry, stack);
      entry.kind = Entry::Kind::nothing;
    }
  }

  // Undoes the other entries after the first `mark` ones. whole: the attempt is over; otherwise only a part of it is, and
  // its blocks are kept until the attempt is over, because reads of them may still be compared. act(call, argument):
  // calls an action. What transactions of actions have noted, which go on with the attempt, stays in the log.
  template <class Act>
  void take_back(std::size_t mark, bool whole, Act act) {
    const std::size_t end = size_;
    for (std::size_t i = end; i > mark; --i) {
      Entry& entry = log_.begin()[i - 1];
      // Before the action, which may end the attempt.
      const Entry::Kind kind = std::exchange(entry.kind, Entry::Kind::nothing);
      if (kind == Entry::Kind::action) act(entry.call, entry.address);
      if (kind == Entry::Kind::block) abandon({entry.address, entry.call});
    }
    std::copy(log_.begin() + end, log_.begin() + size_, log_.begin() + mark);
    size_ -= end - mark;
    if (whole) free_abandoned();
  }

  // Transactions that run from now on are others; call resume() with the result.
  std::size_t set_aside() noexcept { return std::exchange(first_, size_); }
  void resume(std::size_t first) noexcept { first_ = first; }

  // The attempt has committed.
  void clear() {
    size_ = first_;
    if (abandoned_count_ != 0) [[unlikely]]
      free_abandoned();
  }

 private:
  struct Block {
    void* address;
    void (*free)(void*);
  };

  static void restore(const Entry& entry, std::uintptr_t stack) noexcept {
    if (!entry.in_frames || reinterpret_cast<std::uintptr_t>(entry.address) >= stack)  // U1
      std::memcpy(entry.address, entry.value, entry.bytes);
  }
  Entry& add(Entry::Kind kind, void* address, void (*call)(void*)) noexcept {
    if (size_ == log_.capacity()) [[unlikely]]
      log_.full();
    Entry& entry = log_.begin()[size_++];
    entry.address = address;
    entry.call = call;
    entry.kind = kind;
    return entry;
  }
  void abandon(Block block) noexcept {
    if (abandoned_count_ == abandoned_.capacity()) [[unlikely]]
      abandoned_.reserve_or_die(std::size_t{1} << 22, "log of abandoned blocks");
    abandoned_.begin()[abandoned_count_++] = block;
  }
  void free_abandoned() {
    while (abandoned_count_ > 0) {
      const Block block = abandoned_.begin()[--abandoned_count_];
      block.free(block.address);
    }
  }

  tm::Log<Entry> log_;
  tm::Log<Block> abandoned_;
  std::size_t size_ = 0, first_ = 0, abandoned_count_ = 0;
};

}  // namespace loam::itm
