// The beginnings of executions that a search has still to run, the oldest first.
//   Each is kept as the choices in it that were not the first way; the others follow from the program. So one takes
//   some tens of bytes, however long the execution is.
//   The memory is the caller's: who searches has no allocator. Beginnings that were taken leave no room behind until
//   all are taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::simulator {

// A place of an execution at which it could go on in several ways.
struct Choice {
  std::uint32_t place = 0;  // how often the execution had asked before
  std::uint32_t met = 0;    // of all that could be chosen up to here; another value is another program's
  std::uint16_t taken = 0, free = 0, ways = 0;  // ways: 0 where it is not known yet

  bool is_departure() const noexcept { return taken >= free; }
};

class Prefixes {
 public:
  // most: so many are kept in all; the search runs no more.
  Prefixes(std::span<Choice> room, std::uint64_t most) noexcept : room_(room), most_(most) {}

  void clear() noexcept { first_ = end_ = 0, kept_ = 0; }
  bool empty() const noexcept { return first_ == end_; }
  // There was no room for one of them.
  bool full() const noexcept { return full_; }

  // One that ends with the last of these choices.
  void keep(std::span<const Choice> choices) noexcept {
    if (kept_ == most_) return;
    const auto is_other = [](const Choice& choice) { return choice.taken != 0; };
    const auto others = static_cast<std::size_t>(std::ranges::count_if(choices, is_other));
    if (full_ || room_.size() - end_ <= others) {
      full_ = true;
      return;
    }
    room_[end_++].place = static_cast<std::uint32_t>(others);
    end_ = static_cast<std::size_t>(
        std::ranges::copy_if(choices, room_.begin() + static_cast<std::ptrdiff_t>(end_), is_other).out - room_.begin());
    ++kept_;
  }

  // Moves the oldest to the begin of these choices. returns how many choices it has
  std::uint32_t take(std::span<Choice> to) noexcept {
    const std::uint32_t count = room_[first_++].place;
    std::ranges::copy(room_.subspan(first_, count), to.begin());
    first_ += count;
    if (empty()) first_ = end_ = 0;
    return count;
  }

 private:
  const std::span<Choice> room_;
  const std::uint64_t most_;
  std::uint64_t kept_ = 0;
  std::size_t first_ = 0, end_ = 0;
  bool full_ = false;
};

}  // namespace loam::simulator
