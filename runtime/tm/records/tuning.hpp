// tuning: finds the best stripe size and table size while transactions run (Config::adaptive).
//   A thread of the runtime measures commits per second. Once the rate is steady, it tries each pair of kCandidates for
//   kWindows windows and keeps the best. It starts over when the rate has changed for good and a minute has passed, so
//   there are at most kChangesMax changes a minute. While nothing commits it tries nothing.
//   A change  happens behind the gate, while no attempt runs. All records are free then, and every version in them is
//             older than the snapshot of any later attempt. Sleepers in retry() run again, because their records now
//             guard other words.
//   Source    TinySTM, PPoPP 2008, climbs in steps of one. We take few, large steps: each one stops all threads, and a
//             few pairs cover what can be gained (docs/adr/0011).
//   Cost      a membarrier for each change, and all threads wait until the longest running attempt has ended.
//   When not  phases of the program shorter than some windows; transactions that wait for each other; a process that
//             forks: the child keeps its pair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::tm::tuning {

struct Pair {
  unsigned shift = 0;
  unsigned records_log2 = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};

// Tried beside the pair that the configuration asks for.
inline constexpr std::array<Pair, 2> kCandidates{{{4, 20}, {8, 18}}};
inline constexpr unsigned kChangesMax = kCandidates.size() + 1;
// A disturbed window shows too low a rate: of so many windows the best one counts.
inline constexpr unsigned kWindows = 2;
inline constexpr std::uint64_t kWindowNs = 100'000'000, kRestNs = 60'000'000'000;

// The search as plain data, one step for each window: tests show it any rates.
class Search {
 public:
  explicit Search(Pair first) noexcept : used_(first), best_(first) {}

  // returns the pair to use in the next window. rate: commits per second with the pair that was returned last, over the
  // window that ended at now_ns
  Pair next(double rate, std::uint64_t now_ns) noexcept;

 private:
  enum class Stage { settling, trying, resting };

  Pair use(Pair pair) noexcept;
  Pair next_candidate(std::uint64_t now_ns) noexcept;

  Stage stage_ = Stage::settling;
  Pair used_, best_;
  double best_rate_ = 0, last_rate_ = 0, window_rate_ = 0;
  std::uint64_t rested_since_ns_ = 0;
  std::size_t tried_ = 0;
  unsigned windows_ = 0, moved_ = 0;
};

// The records_log2 for which a table that begins with `records_log2` needs room.
constexpr unsigned records_log2_max(unsigned records_log2) noexcept {
  for (const Pair& candidate : kCandidates)
    if (candidate.records_log2 > records_log2) records_log2 = candidate.records_log2;
  return records_log2;
}

// What this process's transactions use (of a table or hash), and how often that has changed. At any time.
Pair pair() noexcept;
unsigned changes() noexcept;

// Changes to a pair at once. Call outside of transactions; waits until no attempt runs. Ends the program if the table
// has no room.
void change_to(Pair wanted) noexcept;

// Begins to tune this process. Call once.
void start() noexcept;

}  // namespace loam::tm::tuning
