// The search for executions that must still run. An execution depends only on the choices that are made in it.
//   Source  stateless search as in VeriSoft (Godefroid, POPL 1997), bounded as in Musuvathi and Qadeer: "Iterative context
//           bounding for systematic testing of multithreaded programs", PLDI 2007.
//   How     An execution asks at each place where it could continue in several ways. The first `free` ways cost nothing,
//           each of the others is a departure. The first execution takes the first way everywhere. next() changes the
//           last choice that has another free way, and takes the first way after it. A departure is not taken at once:
//           next() keeps it, with the choices before it, until all executions with fewer departures have run. So the
//           first fault that is found has the fewest departures, and each execution runs once.
//   No side effects and no pointers: it lies in memory that all executions share, each of which is a separate process.
//
//   S1 the first given_ choices are prescribed by the search; the current execution has reached made_ choices so far.
//   S2 the first fixed_ of them are a kept prefix: all its departures, and what else was not the first way. Behind them
//      choices_ has every choice, none of which is a departure.
//   S3 whole() after the last next(): no way was left out because of the bound, so a larger bound would find nothing
//   more.
#pragma once

#include "simulator/orders/prefixes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::simulator {

class Search {
 public:
  static constexpr std::size_t kChoicesMax = 1 << 15;

  // The first execution of a search with at most so many departures.
  void begin(unsigned bound) noexcept;
  // In an execution: the way to go on, below `ways`; the first `free` cost nothing.
  unsigned choose(unsigned free, unsigned ways) noexcept;
  // After one: whether there is another to be run. later: those that have more departures wait there
  bool next(Prefixes& later) noexcept;

  bool whole() const noexcept { return !cut_; }
  // The execution met other choices than the one whose choices it was given: it depends on something else too.
  bool diverged() const noexcept { return diverged_; }
  // It is given choices by follow(), which may lie at any place.
  bool follows() const noexcept { return follows_; }
  unsigned departures() const noexcept;
  // Every execution with fewer has run.
  unsigned level() const noexcept { return level_; }

  // The choices that were not the first way, as PLACE:WAY,PLACE:WAY.
  std::string_view text(std::span<char> buffer) const noexcept;
  // One execution with these choices. returns false where the text is none
  bool follow(std::string_view text) noexcept;

 private:
  unsigned chosen(Choice& choice, unsigned free, unsigned ways) noexcept;
  void keep_departures(std::uint32_t at, Prefixes& later) noexcept;
  void again(std::uint32_t given) noexcept;

  unsigned bound_ = 0, level_ = 0;
  std::uint32_t place_ = 0;  // how often the execution has asked
  std::uint32_t met_ = 0;    // a hash of all places with several ways so far, and of the ways
  std::uint32_t fixed_ = 0, given_ = 0, made_ = 0;
  bool cut_ = false, diverged_ = false, follows_ = false;
  Choice choices_[kChoicesMax];
};

}  // namespace loam::simulator
