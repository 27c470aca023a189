// The search for executions that must still run. An execution depends only on the choices that are made in it.
//   Source  stateless search as in VeriSoft (Godefroid, POPL 1997), bounded as in Musuvathi and Qadeer: "Iterative context
//           bounding for systematic testing of multithreaded programs", PLDI 2007.
//   How     An execution asks at each place where it could continue in several ways. The first way costs nothing, each
//           of the others is a departure. The first execution takes the first way everywhere. next() changes the last
//           choice that can still be changed, and takes the first way after it. With a bound of 0, 1, 2 ... the first
//           fault that is found has the fewest departures.
//   No side effects and no pointers: it lies in memory that all executions share, each of which is a separate process.
//
//   S1 the first given_ choices are prescribed by the search; the current execution has reached made_ choices so far.
//   S2 whole() after the last next(): no way was left out because of the bound, so a larger bound would find nothing
//   more.
#pragma once

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
  // After one: whether there is another to be run.
  bool next() noexcept;

  bool whole() const noexcept { return !cut_; }
  // The execution met other choices than the one whose choices it was given: it depends on something else too.
  bool diverged() const noexcept { return diverged_; }
  // It is given choices by follow(), which may lie at any place.
  bool follows() const noexcept { return follows_; }
  unsigned departures() const noexcept;

  // The choices that were not the first way, as PLACE:WAY,PLACE:WAY.
  std::string_view text(std::span<char> buffer) const noexcept;
  // One execution with these choices. returns false where the text is none
  bool follow(std::string_view text) noexcept;

 private:
  struct Choice {
    std::uint32_t place;
    std::uint16_t taken, free, ways;  // ways: 0 where it is not known yet
  };

  unsigned chosen(Choice& choice, unsigned free, unsigned ways) noexcept;

  unsigned bound_ = 0;
  std::uint32_t place_ = 0;  // how often the execution has asked
  std::uint32_t given_ = 0, made_ = 0;
  bool cut_ = false, diverged_ = false, follows_ = false;
  Choice choices_[kChoicesMax];
};

}  // namespace loam::simulator
