// switching: which of its two algorithms `auto` runs (auto.hpp): one for few threads that meet, or the scalable one.
//   A thread that has committed looks now and then whether a window of time is over. If it is, it judges the window: commits
//   of all threads, validations, time. To change, it closes the gate of serial transactions and sets one word.
//   Judge     From few to many: at least kValidationsMuch validations a commit. The rate of commits before and after decides
//             whether that was right; if it is not kGain higher, the change is taken back. From many to few: the rate has
//             moved far from that of the trial, so the load is another one; again the rates before and after decide.
//   Constant load   After each trial there is none for a while, which doubles with each trial up to kRestNsMost, and is
//             halved only by a long time without one.
//   Cost      under norec, work on validations alone; each change: a membarrier, and all threads wait until the running
//             attempts have ended, or kGateNs, after which it is given up.
//   When not  attempts that are always longer than kGateNs: it never changes.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <atomic>
#include <cstdint>

namespace loam::tm::switching {

inline constexpr std::uint64_t kWindowNs = 50'000, kGateNs = 50'000;
inline constexpr std::uint64_t kRestNsLeast = 1'000'000, kRestNsMost = 256'000'000;
// How often a thread looks at the clock.
inline constexpr std::uint64_t kValidationsPerLook = 16, kCommitsPerLook = 32;
inline constexpr double kValidationsMuch = 1.0, kGain = 1.1, kMovedDown = 0.6, kMovedUp = 1.7;

// What happened in a window, in all threads.
struct Window {
  std::uint64_t commits = 0, validations = 0, ns = 0;
};

// The judgement as plain data, one step for each window: tests show it any windows.
class Judge {
 public:
  // returns whether the next window is to run under the scalable algorithm. now_ns: when the window ended
  bool next(const Window& window, std::uint64_t now_ns) noexcept;
  // What next() wanted could not be done: attempts ran for too long.
  void refused(std::uint64_t now_ns) noexcept;

 private:
  bool begin_trial(bool scales, double rate, std::uint64_t now_ns) noexcept;

  bool scales_ = false, tries_ = false, mixed_ = false;  // mixed_: the next window holds the change
  unsigned moved_ = 0;                                   // windows in a row whose rate was far from rate_
  double rate_ = 0;                                      // of the scalable algorithm when it was last judged
  double before_ = 0;                                    // of the algorithm before the trial
  std::uint64_t rest_ns_ = kRestNsLeast, rests_until_ns_ = 0;
};

extern constinit std::atomic<bool> scalable;

// Whether attempts that begin now are of the scalable algorithm. Within an announcement it does not change. relaxed:
// serial.C orders it, for who has found the gate open; who runs alone set it itself or comes after
inline bool scales() noexcept { return scalable.load(std::memory_order_relaxed); }

// For the first transaction of a process under auto: how the scalable algorithm is to privatize.
void prepare(Config& config) noexcept;

// The thread's next attempts are of the other algorithm than its last.
void change_attempts(Descriptor& d, bool scales) noexcept;
void renew_snapshot(Descriptor& d) noexcept;

// After a commit, outside of attempts: ends the window if it is over, and may change the algorithm.
void look(Descriptor& d) noexcept;

// Changes to the scalable algorithm or back, if attempts end within limit_ns. Outside of attempts. returns whether it is done
bool change_to(bool scales, std::uint64_t limit_ns) noexcept;

// Of the process; exact while no transaction runs.
struct Report {
  std::uint64_t switches = 0;
  std::uint64_t commits_of_few = 0, commits_of_many = 0;
};
Report report() noexcept;

// In the child of a fork: nobody judges.
void forget_role() noexcept;

}  // namespace loam::tm::switching
