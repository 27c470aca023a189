// switching: which of its two algorithms `auto` runs (auto.hpp): the one for few threads that meet, or the scalable one.
//   A thread that has committed looks now and then whether a window of time is over. If it is, it judges the window:
//   commits of all threads, validations, time. To change, it closes the gate of serial transactions and sets one word.
//   Trial     The algorithm changes, one window passes unjudged, and the rate of the next one decides: a change that is not
//             kGain times as fast is taken back. As long as the rate rises from window to window by kRising (records come
//             into caches), the trial goes on, for kTrialWindows at most. From few to many only where threads meet: at least
//             kValidationsMuch validations a commit. From many to few a trial is all there is to go by.
//   Constant load   After a trial there is none for a while: kRestNsLeast, twice that after the next one that failed, and so
//             on up to kRestNsMost; kRestNsKept at least after one that did not fail.
//   New load  A rate that is far from the one at the last trial, for kMovedWindows windows, ends the rest. It does so once
//             in kResetsApartNs, so a load that never settles costs a few trials in that time. A rate that rises under the
//             scalable algorithm is no reason to leave it: the next trial comes when the rest is over.
//   Cost      under the one for few: work on validations alone. Under the other: a look at the clock every kCommitsPerLook
//             commits of a thread. Each window: a line of each thread is read. Each change: a membarrier, and all threads
//             wait until the running attempts have ended, or kGateNs. Where that was too short, the next wait is twice
//             as long, and comes after kRestPerGate times its length.
//   When not  loads that change more often than every millisecond.
//   Source    a choice by measured rates, and trials: Wang, Kulkarni, Cavazos and Spear, "A transactional memory with
//             automatic performance tuning", TACO 2012.
#pragma once

#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <cstdint>

namespace loam::tm::switching {

// A window is over after kWindowNs, if it has kCommitsLeast commits or lasts kWindowNsSparse. A longer one than kWindowNsMost
// is not judged: nobody has looked, so it was not one load.
inline constexpr std::uint64_t kWindowNs = 50'000, kWindowNsSparse = 16 * kWindowNs, kWindowNsMost = 100'000'000;
inline constexpr std::uint64_t kCommitsLeast = 64;
inline constexpr std::uint64_t kGateNs = 50'000, kGateNsMost = 10'000'000, kRestPerGate = 20;
inline constexpr std::uint64_t kRestNsLeast = 500'000, kRestNsKept = 8'000'000, kRestNsMost = 256'000'000;
inline constexpr std::uint64_t kResetsApartNs = 4'000'000;
inline constexpr unsigned kMovedWindows = 2, kTrialWindows = 5;
// How often a thread looks at the clock.
inline constexpr std::uint64_t kValidationsPerLook = 16, kCommitsPerLook = 32;
inline constexpr double kValidationsMuch = 0.75, kGain = 1.1, kRising = 1.15, kMovedDown = 0.6, kMovedUp = 1.7;

// What happened in a window, in all threads.
struct Window {
  bool scales = false;  // it ran under the scalable algorithm
  std::uint64_t commits = 0, validations = 0, ns = 0;
};

// The judgement as plain data, one step for each window: tests show it any windows.
class Judge {
 public:
  // returns whether the next window is to run under the scalable algorithm. now_ns: when the window ended
  bool next(const Window& window, std::uint64_t now_ns) noexcept;

 private:
  bool judge_trial(bool scales, double rate, std::uint64_t now_ns) noexcept;
  void notice_load(bool scales, double rate, std::uint64_t now_ns) noexcept;

  bool tries_ = false;   // the window is of a trial
  bool passes_ = false;  // the window holds a change of algorithms
  unsigned moved_ = 0;   // windows in a row whose rate was far from rate_
  double rate_ = 0;      // when it was last judged, of what runs since
  double before_ = 0;    // before the trial
  double trial_ = 0;     // in the trial's last window
  unsigned trial_windows_ = 0;
  std::uint64_t rest_ns_ = kRestNsLeast, tried_ns_ = 0, rests_until_ns_ = 0, keeps_rest_until_ns_ = 0;
};

// Whether attempts that begin now are of the scalable algorithm. Within an announcement it does not change. relaxed:
// serial.C orders it, for who has found the gate open; who runs alone set it itself or comes after
inline bool scales() noexcept { return (shared.slow_begin.load(std::memory_order_relaxed) & serial::kScales) != 0; }

// Tests fix the algorithm before the first transaction of the process. Without that it is judged, and begins with few.
enum class Runs { judged, few, many };
void fix(Runs runs) noexcept;

// After a commit, outside of attempts: ends the window if it is over, and may change the algorithm.
void look(Descriptor& d) noexcept;

// Changes to the scalable algorithm or back, if attempts end within limit_ns. Outside of attempts. returns whether that is
// what runs now
bool change_to(bool scales, std::uint64_t limit_ns) noexcept;

// In the child of a fork, once the threads that are not there are forgotten: nobody judges, and a window begins.
void forget_role() noexcept;

}  // namespace loam::tm::switching
