#include "workloads/harness/slices.hpp"

#include "runtime/platform/machine.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>
#include <limits>

namespace loam::workloads {

void SegmentLog::begin(std::span<Segment> room, std::uint64_t slice_ns, RunDelay& delay,
                       std::uint64_t now_ns) noexcept {
  room_ = room;
  count_ = 0;
  slice_ns_ = slice_ns;
  operations_ = 0;
  delay_ = &delay;
  others_ns_ = nullptr;
  open(now_ns);
  waited_ns();
}

void SegmentLog::waits_are(const std::uint64_t& total_ns) noexcept {
  others_ns_ = &total_ns;
  others_before_ns_ = total_ns;
}

void SegmentLog::open(std::uint64_t now_ns) noexcept {
  begin_ns_ = now_ns;
  boundary_ns_ = count_ == room_.size() ? ~std::uint64_t{0} : (now_ns / slice_ns_ + 1) * slice_ns_;
}

std::uint64_t SegmentLog::waited_ns() noexcept {
  if (others_ns_ == nullptr) return delay_->taken_ns();
  const std::uint64_t before = others_before_ns_;
  return (others_before_ns_ = *others_ns_) - before;
}

void SegmentLog::close(std::uint64_t now_ns, std::uint64_t operations) noexcept {
  room_[count_++] = {begin_ns_, now_ns, operations - operations_, waited_ns()};
  operations_ = operations;
  open(platform::monotonic_ns());
}

namespace {

// The slices of a run, and which of them count.
class Grid {
 public:
  Grid(std::span<const std::span<const Segment>> threads, std::uint64_t slice_ns)
      : slice_ns_(slice_ns), overlap_ns_(static_cast<std::uint64_t>(kOverlapMax * static_cast<double>(slice_ns))) {
    std::uint64_t from_ns = 0, to_ns = ~std::uint64_t{0};
    for (const auto segments : threads) {
      from_ns = std::max(from_ns, segments.empty() ? ~std::uint64_t{0} : segments.front().begin_ns);
      to_ns = std::min(to_ns, segments.empty() ? 0 : segments.back().end_ns);
    }
    if (threads.empty() || from_ns >= to_ns) return;
    first_ = (from_ns + slice_ns - 1) / slice_ns;
    end_ = std::max(first_, to_ns / slice_ns);
    if (size() == 0) return;
    // From the operating system: no block of the allocator under study.
    waited_ = static_cast<std::uint8_t*>(platform::map_lazy_or_die(size(), "the slices of a run"));
    waited_own_ = static_cast<std::uint8_t*>(platform::map_lazy_or_die(size(), "the slices of a thread"));
    for (const auto segments : threads) mark(segments, waited_);
  }
  ~Grid() {
    if (waited_ == nullptr) return;
    platform::unmap(waited_, size());
    platform::unmap(waited_own_, size());
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  // From here on only this thread's waits count; returns in how many slices it did not wait.
  std::size_t keep_own(std::span<const Segment> segments) {
    if (size() == 0) return 0;
    std::fill_n(waited_own_, size(), std::uint8_t{0});
    mark(segments, waited_own_);
    return static_cast<std::size_t>(std::count(waited_own_, waited_own_ + size(), std::uint8_t{0}));
  }

  std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - first_); }
  bool keeps(std::size_t slice) const noexcept { return waited_[slice] == 0; }
  bool keeps(const Segment& segment) const noexcept { return is_clean(segment, waited_); }
  bool keeps_own(const Segment& segment) const noexcept { return is_clean(segment, waited_own_); }
  // visit(index) for those that the segment lies in, as far as they belong to the run.
  template <class Visit>
  void for_each(const Segment& segment, Visit visit) const {
    const auto [first, last] = slices(segment);
    for (std::uint64_t slice = std::max(first, first_); slice <= last && slice < end_; ++slice)
      visit(static_cast<std::size_t>(slice - first_));
  }

 private:
  struct Range {
    std::uint64_t first, last;
  };

  void mark(std::span<const Segment> segments, std::uint8_t* waited) const {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!waited_too_long(segments[i])) continue;
      // The kernel's count is read after the end that is stamped, so the wait may lie on either side of the segment.
      Segment reach = segments[i];
      if (i != 0) reach.begin_ns = segments[i - 1].end_ns;
      if (i + 1 != segments.size()) reach.end_ns = segments[i + 1].begin_ns;
      for_each(reach, [waited](std::size_t slice) { waited[slice] = 1; });
    }
  }

  bool is_clean(const Segment& segment, const std::uint8_t* waited) const noexcept {
    const auto [first, last] = slices(segment);
    if (first < first_ || last >= end_) return false;
    bool clean = true;
    for_each(segment, [&](std::size_t slice) { clean = clean && waited[slice] == 0; });
    return clean;
  }

  static bool waited_too_long(const Segment& segment) noexcept {
    const auto length_ns = static_cast<double>(segment.end_ns - segment.begin_ns);
    return static_cast<double>(segment.waited_ns) > kWaitedShareMax * length_ns;
  }

  // By more than kOverlapMax; at least the one in which it begins.
  Range slices(const Segment& segment) const noexcept {
    const std::uint64_t first = segment.begin_ns / slice_ns_;
    const std::uint64_t inner_ns = segment.end_ns - std::min(segment.end_ns, overlap_ns_ + 1);
    return {first, std::max(first, inner_ns / slice_ns_)};
  }

  const std::uint64_t slice_ns_, overlap_ns_;
  std::uint64_t first_ = 0, end_ = 0;
  std::uint8_t* waited_ = nullptr;
  std::uint8_t* waited_own_ = nullptr;
};

}  // namespace

SlicedRate rate_of(std::span<const std::span<const Segment>> threads, std::uint64_t slice_ns,
                   std::span<SliceRow> rows) {
  Grid grid(threads, slice_ns);
  SlicedRate rate{.slices = grid.size(), .own_kept = grid.size()};
  for (std::size_t slice = 0; slice < grid.size(); ++slice) {
    rate.kept += grid.keeps(slice) ? 1 : 0;
    if (slice < rows.size()) rows[slice] = {.kept = grid.keeps(slice)};
  }
  double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
  for (const auto segments : threads) {
    std::uint64_t operations = 0, ns = 0, own_operations = 0, own_ns = 0;
    rate.own_kept = std::min(rate.own_kept, grid.keep_own(segments));
    for (const Segment& segment : segments) {
      std::size_t last = grid.size();
      grid.for_each(segment, [&](std::size_t slice) {
        last = slice;
        if (slice < rows.size()) rows[slice].waited_ns += segment.waited_ns;
      });
      if (last < rows.size() && last < grid.size()) rows[last].operations += segment.operations;
      if (grid.keeps_own(segment)) {
        own_operations += segment.operations;
        own_ns += segment.end_ns - segment.begin_ns;
      }
      if (!grid.keeps(segment)) continue;
      operations += segment.operations;
      ns += segment.end_ns - segment.begin_ns;
    }
    // A thread of which nothing counts: its part of the rate is not known.
    if (ns == 0) rate.kept = 0;
    if (own_ns == 0) rate.own_kept = 0;
    const double s = static_cast<double>(ns) * 1e-9, per_s = ns == 0 ? 0 : static_cast<double>(operations) / s;
    const double own_s = static_cast<double>(own_ns) * 1e-9;
    if (own_ns != 0) rate.own_per_s += static_cast<double>(own_operations) / own_s;
    rate.own_thread_s += own_s;
    rate.operations += operations;
    rate.thread_s += s;
    slowest = std::min(slowest, per_s);
    fastest = std::max(fastest, per_s);
  }
  rate.fairness = fastest > 0 ? slowest / fastest : 0;
  return rate;
}

}  // namespace loam::workloads
