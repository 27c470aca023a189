// Slices: the timed part of a run in slices of a millisecond. Other tasks then disturb single slices, not the whole
// run.
//   Slices    All threads have the same slices: whole milliseconds of the system's monotonic clock. A thread closes a
//             segment when it first reads the clock after a boundary (pace.hpp). So a segment is a slice plus the rest
//             of its last operation. If a thread waited through several slices, it has one segment over all of them.
//             The bookkeeping between two segments belongs to neither.
//   Counting  A slice counts if every thread worked during all of it, and none waited for a processor. A segment counts
//             if all its slices do. The rate is the operations of the counted segments, divided by their time, times
//             the number of threads.
//   Too few slices left: the rate is the sum over all threads, each over the slices in which it did not wait itself. If
//             threads hinder each other this is not the same, but of the same order. The rate of a whole disturbed run
//             may be half of it, and could not be compared with other runs of the block. If there are too few of these
//             slices as well, or if the run has only a few slices, the rate is that of the whole run.
//   Length    Beside one endless loop, a kernel with ticks of 4 ms lets a thread run for 4 ms at a time, so every slice
//             of 5 or 10 ms would contain a wait. A boundary is cheap, because no thread is woken for it.
#pragma once

#include "workloads/harness/run_delay.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loam::workloads {

// One segment of one thread.
struct Segment {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t operations = 0;
  std::uint64_t waited_ns = 0;  // for a processor that others had: RunDelay::taken_ns
};

// The segments of one thread while it runs. For its thread only, until that has ended.
class SegmentLog {
 public:
  // room: written one after the other; what comes when it is full is not kept. delay: of the thread
  void begin(std::span<Segment> room, std::uint64_t slice_ns, RunDelay& delay, std::uint64_t now_ns) noexcept;
  // From here on this number, which only grows, says what was waited, and not the thread's own counter.
  void waits_are(const std::uint64_t& total_ns) noexcept;

  bool is_due(std::uint64_t now_ns) const noexcept { return now_ns >= boundary_ns_; }
  // operations: since the beginning
  void close(std::uint64_t now_ns, std::uint64_t operations) noexcept;

  std::span<const Segment> closed() const noexcept { return room_.first(count_); }

 private:
  void open(std::uint64_t now_ns) noexcept;
  std::uint64_t waited_ns() noexcept;

  std::span<Segment> room_;
  std::size_t count_ = 0;
  std::uint64_t slice_ns_ = 1, boundary_ns_ = ~std::uint64_t{0}, begin_ns_ = 0, operations_ = 0;
  RunDelay* delay_ = nullptr;
  const std::uint64_t* others_ns_ = nullptr;
  std::uint64_t others_before_ns_ = 0;
};

// How long the slices of a timed part of this length are: 1 ms, longer where there would be more than kSlicesMax.
inline constexpr std::uint64_t kSliceNs = 1'000'000, kSlicesMax = 16384;
constexpr std::uint64_t slice_ns_of(std::uint64_t duration_ns) noexcept {
  const std::uint64_t needed = (duration_ns + kSlicesMax - 1) / kSlicesMax;
  return needed <= kSliceNs ? kSliceNs : (needed + kSliceNs - 1) / kSliceNs * kSliceNs;
}
// Segments that a thread closes in that time, with some in reserve: threads begin and end late on a busy machine.
constexpr std::size_t segments_max(std::uint64_t duration_ns) noexcept {
  return static_cast<std::size_t>(duration_ns / slice_ns_of(duration_ns) * 5 / 4 + 64);
}

// What of a slice's length a thread may wait in it: interrupts' threads that take some microseconds are everywhere.
inline constexpr double kWaitedShareMax = 0.02;
// By how much of a slice's length a segment may reach into the next one and still not lie in it.
inline constexpr double kOverlapMax = 0.1;
// The rate is of slices if at least so many, and this part of all, are left; of a thread's own likewise.
inline constexpr std::size_t kSlicesMin = 10;
inline constexpr double kKeptShareMin = 0.05;

struct SlicedRate {
  std::size_t slices = 0;        // that all threads worked through
  std::size_t kept = 0;          // of these: no thread waited
  std::uint64_t operations = 0;  // of the segments that count, all threads
  double thread_s = 0;           // their time, all threads
  double fairness = 0;           // rate of the slowest thread over the fastest one's, in them
  std::size_t own_kept = 0;      // of the thread that has the fewest: slices in which it did not wait itself
  double own_per_s = 0;          // the threads' rates in these, added up
  double own_thread_s = 0;       // their time, all threads

  bool is_enough() const noexcept { return thread_s > 0 && are_enough(kept); }
  bool is_enough_by_own() const noexcept { return own_thread_s > 0 && are_enough(own_kept); }

 private:
  bool are_enough(std::size_t some) const noexcept {
    return some >= kSlicesMin && static_cast<double>(some) >= kKeptShareMin * static_cast<double>(slices);
  }
};

// What is told of one slice.
struct SliceRow {
  std::uint64_t operations = 0;  // of the segments that end in it or at its end
  std::uint64_t waited_ns = 0;   // of the threads whose segments reach into it, each counted whole
  bool kept = false;
};

// The slices of a run: threads[i] are the segments of thread i, in their order.
// rows: null, or room for one row per slice; further slices are not told
SlicedRate rate_of(std::span<const std::span<const Segment>> threads, std::uint64_t slice_ns,
                   std::span<SliceRow> rows = {});

}  // namespace loam::workloads
