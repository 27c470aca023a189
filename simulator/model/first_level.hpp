// The first-level cache of one core: which lines, in which state, and what the core did with them.
//
//   F1 a line is in at most one way of its set.            F2 a way without a line is invalid, and its copy is clean.
//   F3 state >= exclusive if and only if the directory names this core as the owner.
#pragma once

#include "simulator/model/arena.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace loam::simulator {

inline constexpr std::uint64_t kNoLine = ~std::uint64_t{0};

enum class LineState : std::uint8_t { invalid, shared, exclusive, modified };

// One line in a first-level cache. Masks have a bit for each byte of the line.
struct alignas(64) Copy {
  std::uint64_t written = 0;     // since the directory was last told, without those of the running transaction
  std::uint64_t others = 0;      // what others wrote while it was away: a use of one decides for true sharing
  std::uint64_t tx_read = 0;     // by the running transaction
  std::uint64_t tx_written = 0;  // by the running transaction
  std::uint64_t hot_until = 0;
  LineState state = LineState::invalid;
  bool open = false;  // false sharing unless a byte of `others` is used

  bool in_transaction() const noexcept { return (tx_read | tx_written) != 0; }
};
static_assert(sizeof(Copy) == 64, "a hit touches one cache line of the host beside the tags");

class FirstLevel {
 public:
  static constexpr int kNone = -1;

  void init(Arena& arena, std::uint64_t sets, std::uint32_t ways) noexcept {
    sets_ = sets;
    ways_ = ways;
    // One more: find() may look at the way behind a set.
    lines_ = arena.array<std::uint64_t>(sets * ways + 1);
    for (std::uint64_t i = 0; i <= sets * ways; ++i) lines_[i] = kNoLine;
    stamps_ = arena.zeros<std::uint64_t>(sets * ways);
    copies_ = arena.array<Copy>(sets * ways);
    latest_ = arena.array<std::uint8_t>(sets);
    std::fill(latest_, latest_ + sets, static_cast<std::uint8_t>(ways));
  }

  // The index of a line's copy, kNone where it has none.
  int find(std::uint64_t line) const noexcept {
    const std::uint64_t set = line & (sets_ - 1), first = set * ways_;
    const std::uint64_t guess = first + latest_[set];
    if (lines_[guess] == line) return static_cast<int>(guess);
    for (std::uint64_t at = first; at < first + ways_; ++at)
      if (lines_[at] == line) return static_cast<int>(at);
    return kNone;
  }

  // The index where a line goes: a free way, else the one that was not used for longest.
  int place(std::uint64_t line) const noexcept {
    const std::uint64_t first = (line & (sets_ - 1)) * ways_;
    std::uint64_t chosen = first;
    for (std::uint64_t at = first; at < first + ways_; ++at) {
      if (lines_[at] == kNoLine) return static_cast<int>(at);
      if (stamps_[at] < stamps_[chosen]) chosen = at;
    }
    return static_cast<int>(chosen);
  }

  // Makes it the latest of its set; it is not looked at by place() before others of the set were used.
  void use(int at, std::uint64_t line) noexcept {
    const std::uint64_t set = line & (sets_ - 1);
    const auto way = static_cast<std::uint8_t>(static_cast<std::uint64_t>(at) - set * ways_);
    if (latest_[set] == way) return;
    stamps_[at] = ++stamp_;
    latest_[set] = way;
  }

  void put(int at, std::uint64_t line) noexcept {
    lines_[at] = line;
    use(at, line);
  }

  // A way that has a line loses it.
  void drop(int at) noexcept {
    const std::uint64_t set = lines_[at] & (sets_ - 1);
    if (set * ways_ + latest_[set] == static_cast<std::uint64_t>(at)) latest_[set] = static_cast<std::uint8_t>(ways_);
    lines_[at] = kNoLine;
    copies_[at] = Copy{};
    stamps_[at] = 0;
  }

  std::uint64_t line(int at) const noexcept { return lines_[at]; }
  Copy& copy(int at) noexcept { return copies_[at]; }
  const Copy& copy(int at) const noexcept { return copies_[at]; }
  int size() const noexcept { return static_cast<int>(sets_ * ways_); }

 private:
  std::uint64_t sets_ = 0;
  std::uint32_t ways_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t* lines_ = nullptr;
  std::uint64_t* stamps_ = nullptr;
  Copy* copies_ = nullptr;
  std::uint8_t* latest_ = nullptr;  // of each set, the way that was used last; ways_: its line is gone
};

}  // namespace loam::simulator
