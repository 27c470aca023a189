// A second- or third-level cache: which lines it has, which of them are modified, and the order of their last use. The
// directory decides which core may write a line.
//
// Each set is an array of lines, the most recently used first; the last one is replaced. Free places are at the end.
#pragma once

#include "simulator/model/arena.hpp"
#include "simulator/model/first_level.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace loam::simulator {

class OuterCache {
 public:
  struct Evicted {
    std::uint64_t line = kNoLine;
    bool changed = false;
  };

  void init(Arena& arena, std::uint64_t sets, std::uint32_t ways) noexcept {
    sets_ = sets;
    mask_ = std::has_single_bit(sets) ? sets - 1 : 0;
    ways_ = ways;
    rows_ = arena.zeros<std::uint64_t>(sets * ways);
  }

  void use(std::uint64_t line) noexcept {
    std::uint64_t* const row = row_of(line);
    const std::uint32_t at = find(row, line);
    if (at != 0 && at != ways_) to_front(row, at, row[at]);
  }

  void prefetch(std::uint64_t line) const noexcept {
    const char* const row = reinterpret_cast<const char*>(row_of(line));
    for (std::uint32_t at = 0; at < ways_ * sizeof(std::uint64_t); at += 64) __builtin_prefetch(row + at, 1);
  }

  bool has(std::uint64_t line) const noexcept { return find(row_of(line), line) != ways_; }

  bool changed(std::uint64_t line) const noexcept {
    const std::uint64_t* const row = row_of(line);
    const std::uint32_t at = find(row, line);
    return at != ways_ && (row[at] & kChanged) != 0;
  }

  // Puts a line in, or uses it if it is there. returns what had to leave
  Evicted put(std::uint64_t line, bool changed) noexcept {
    std::uint64_t* const row = row_of(line);
    const std::uint64_t tag = tag_of(line);
    // In one pass: each line that is passed moves one place back.
    std::uint64_t moving = tag | (changed ? kChanged : 0);
    for (std::uint32_t at = 0; at < ways_; ++at) {
      std::swap(moving, row[at]);
      if ((moving & ~kChanged) == tag) {
        row[0] |= moving & kChanged;
        return {};
      }
      if (moving == 0) return {};  // all places from here on are free
    }
    return {(moving >> 1) - 1, (moving & kChanged) != 0};
  }

  // Takes a line out. returns whether memory does not have it
  bool drop(std::uint64_t line) noexcept {
    std::uint64_t* const row = row_of(line);
    const std::uint32_t at = find(row, line);
    if (at == ways_) return false;
    const bool changed = (row[at] & kChanged) != 0;
    std::memmove(row + at, row + at + 1, (ways_ - 1 - at) * sizeof *row);
    row[ways_ - 1] = 0;
    return changed;
  }

 private:
  //   bits 63..1: the line + 1, or 0 for none    bit 0: changed
  static constexpr std::uint64_t kChanged = 1;
  static std::uint64_t tag_of(std::uint64_t line) noexcept { return (line + 1) << 1; }

  std::uint64_t* row_of(std::uint64_t line) const noexcept {
    return rows_ + (mask_ != 0 || sets_ == 1 ? line & mask_ : line % sets_) * ways_;
  }

  std::uint32_t find(const std::uint64_t* row, std::uint64_t line) const noexcept {
    const std::uint64_t tag = tag_of(line);
    std::uint32_t at = 0;
    for (; at < ways_ && (row[at] & ~kChanged) != tag; ++at)
      if (row[at] == 0) return ways_;
    return at;
  }

  static void to_front(std::uint64_t* row, std::uint32_t at, std::uint64_t tag) noexcept {
    std::memmove(row + 1, row, at * sizeof *row);
    row[0] = tag;
  }

  std::uint64_t sets_ = 1, mask_ = 0;
  std::uint32_t ways_ = 1;
  std::uint64_t* rows_ = nullptr;
};

}  // namespace loam::simulator
