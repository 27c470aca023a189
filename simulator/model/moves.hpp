// A sample of all transfers, of bounded size: which line went from which core to which, and when.
//   Source  a reservoir with doubling intervals: one of 2^n transfers is kept, chosen by a hash of its number. When
//           there is no room, n grows by one and half of the sample is dropped. (Taking every 2^n-th in order would
//           fail: if two cores send a line back and forth, the sample would show only one direction.)
//   Same calls, same sample.
#pragma once

#include "simulator/model/arena.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loam::simulator {

class Moves {
 public:
  struct Move {
    std::uint64_t line, now;
    std::uint32_t hash;
    std::uint8_t from, to;  // cores
  };
  static constexpr std::size_t kMovesMax = 1 << 16;

  void init(Arena& arena) noexcept { all_ = arena.zeros<Move>(kMovesMax); }

  void note(std::uint64_t line, unsigned from, unsigned to, std::uint64_t now) noexcept {
    const std::uint32_t hash = mixed(noted_++);
    if ((hash & rest_) != 0) return;
    if (size_ == kMovesMax) {
      rest_ = 2 * rest_ + 1;
      size_ = static_cast<std::size_t>(
          std::remove_if(all_, all_ + size_, [&](const Move& move) { return (move.hash & rest_) != 0; }) - all_);
      if ((hash & rest_) != 0 || size_ == kMovesMax) return;
    }
    all_[size_++] = {line, now, hash, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to)};
  }

  // One in so many was kept.
  std::uint64_t one_in() const noexcept { return std::uint64_t{rest_} + 1; }
  std::size_t size() const noexcept { return size_; }
  // In the order in which they were made.
  const Move* begin() const noexcept { return all_; }
  const Move* end() const noexcept { return all_ + size_; }

 private:
  // Of a number, so that bits of it are as if by chance (the finaliser of MurmurHash3).
  static std::uint32_t mixed(std::uint64_t number) noexcept {
    auto hash = static_cast<std::uint32_t>(number ^ number >> 32);
    hash = (hash ^ hash >> 16) * 0x85EB'CA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2'AE35;
    return hash ^ hash >> 16;
  }

  Move* all_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t noted_ = 0;
  std::uint32_t rest_ = 0;  // the low bits of a hash that must be zero
};

}  // namespace loam::simulator
