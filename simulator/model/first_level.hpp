// The first-level cache of one core: which lines, in which state, and what the core did with them.
//
//   F1 a line is in at most one way of its set.            F2 a way without a line is invalid, and its copy is clean.
//   F3 state >= exclusive if and only if the directory names this core as the owner.
#pragma once

#include "simulator/model/arena.hpp"

#include <bit>
#include <cstdint>
#include <utility>

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
    lines_ = arena.array<std::uint64_t>(sets * ways);
    for (std::uint64_t i = 0; i < sets * ways; ++i) lines_[i] = kNoLine;
    copies_ = arena.array<Copy>(sets * ways);
    order_ = arena.array<std::uint8_t>(sets * ways);
    for (std::uint64_t i = 0; i < sets * ways; ++i) order_[i] = static_cast<std::uint8_t>(i % ways);
  }

  // The index of a line's copy, kNone where it has none.
  int find(std::uint64_t line) const noexcept {
    const std::uint64_t first = (line & (sets_ - 1)) * ways_;
    const std::uint64_t guess = first + order_[first];
    if (lines_[guess] == line) return static_cast<int>(guess);
    if (ways_ == kManyWays) {  // without branches
      unsigned found = 0;
      for (unsigned way = 0; way < kManyWays; ++way) found |= static_cast<unsigned>(lines_[first + way] == line) << way;
      return found == 0 ? kNone : static_cast<int>(first) + std::countr_zero(found);
    }
    for (std::uint64_t at = first; at < first + ways_; ++at)
      if (lines_[at] == line) return static_cast<int>(at);
    return kNone;
  }

  // The index where a line goes: a free way, else the one that was not used for longest.
  int place(std::uint64_t line) const noexcept {
    const std::uint64_t first = (line & (sets_ - 1)) * ways_;
    for (std::uint64_t at = first; at < first + ways_; ++at)
      if (lines_[at] == kNoLine) return static_cast<int>(at);
    return static_cast<int>(first + order_[first + ways_ - 1]);
  }

  // Makes it the latest of its set; it is not looked at by place() before others of the set were used.
  void use(int at, std::uint64_t line) noexcept {
    const std::uint64_t first = (line & (sets_ - 1)) * ways_;
    const auto way = static_cast<std::uint8_t>(static_cast<std::uint64_t>(at) - first);
    std::uint8_t* order = order_ + first;
    if (*order == way) return;
    // Each way that was used later moves one place back.
    std::uint8_t moving = way;
    do std::swap(moving, *order++);
    while (moving != way);
  }

  void put(int at, std::uint64_t line) noexcept {
    lines_[at] = line;
    use(at, line);
  }

  // A way that has a line loses it.
  void drop(int at) noexcept {
    lines_[at] = kNoLine;
    copies_[at] = Copy{};
  }

  // Loads what a search for the line looks at.
  void prefetch(std::uint64_t line) const noexcept {
    const std::uint64_t first = (line & (sets_ - 1)) * ways_;
    __builtin_prefetch(lines_ + first, 1);
    __builtin_prefetch(order_ + first, 1);
  }

  std::uint64_t line(int at) const noexcept { return lines_[at]; }
  Copy& copy(int at) noexcept { return copies_[at]; }
  const Copy& copy(int at) const noexcept { return copies_[at]; }
  int size() const noexcept { return static_cast<int>(sets_ * ways_); }

 private:
  static constexpr std::uint32_t kManyWays = 8;  // of most machines

  std::uint64_t sets_ = 0;
  std::uint32_t ways_ = 0;
  std::uint64_t* lines_ = nullptr;
  std::uint8_t* order_ = nullptr;  // of each set, its ways in the order of their last use, the latest first
  Copy* copies_ = nullptr;
};

}  // namespace loam::simulator
