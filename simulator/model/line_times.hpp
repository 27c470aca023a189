// For each cache line, how long cores were at it while another core used it, too: what a sampler that looks at the clock sees
// of shared lines, and counts of moves do not. Who waits for a lock is at its line all the while, although it does not move.
//   How      From one access of a core to its next, its time is that of the first one's line. It is shared time if another core
//            used the line so shortly before: wrote it, where the access reads.
//   Cost     a look into a table for each access; so only where it is asked for.
//   When not more than kLines lines: later ones are not followed.
#pragma once

#include "runtime/platform/pages.hpp"
#include "simulator/model/core_set.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::simulator {

class LineTimes {
 public:
  static constexpr std::size_t kLines = std::size_t{1} << 20;

  explicit LineTimes(std::uint64_t window) noexcept
      : window_(window),
        lines_(static_cast<Line*>(platform::map_lazy_or_die(2 * kLines * sizeof(Line), "the times of cache lines"))) {}
  ~LineTimes() { platform::unmap(lines_, 2 * kLines * sizeof(Line)); }
  LineTimes(const LineTimes&) = delete;
  LineTimes& operator=(const LineTimes&) = delete;

  // A core's access begins. line: its number; now: in cycles, which do not fall for one core
  void access(unsigned core, std::uint64_t line, bool writes, std::uint64_t now) noexcept {
    Core& own = cores_[core];
    if (own.shared != nullptr) own.shared->cycles += now - own.since;
    Line* const one = find(line, true);
    own = {one != nullptr && (writes ? one->used : one->written).by_other(core, now, window_) ? one : nullptr, now};
    if (one == nullptr) return;
    one->used.note(core, now);
    if (writes) one->written.note(core, now);
  }

  // Of a line.
  std::uint64_t shared_cycles(std::uint64_t line) noexcept {
    const Line* const one = find(line, false);
    return one == nullptr ? 0 : one->cycles;
  }

 private:
  // The last two cores that did something; core: counted from 1, 0: none.
  struct Last {
    struct {
      std::uint64_t core, when;
    } last, before;

    void note(unsigned core, std::uint64_t now) noexcept {
      if (last.core != core + 1) before = last;
      last = {core + 1, now};
    }
    bool by_other(unsigned core, std::uint64_t now, std::uint64_t window) const noexcept {
      const auto& other = last.core == core + 1 ? before : last;
      return other.core != 0 && now <= other.when + window;
    }
  };

  struct Line {
    std::uint64_t number, cycles;  // number: plus 1; 0: free
    Last used, written;
  };

  struct Core {
    Line* shared = nullptr;
    std::uint64_t since = 0;
  };

  Line* find(std::uint64_t line, bool add) noexcept {
    for (std::size_t at = line * 0x9E37'79B9'7F4A'7C15 >> 43;; at = (at + 1) & (2 * kLines - 1)) {
      Line& one = lines_[at];
      if (one.number == line + 1) return &one;
      if (one.number != 0) continue;
      if (!add || count_ == kLines) return nullptr;
      ++count_;
      one.number = line + 1;
      return &one;
    }
  }

  const std::uint64_t window_;
  Line* const lines_;
  std::size_t count_ = 0;
  Core cores_[kCoresMax];
};

}  // namespace loam::simulator
