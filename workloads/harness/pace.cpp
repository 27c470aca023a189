#include "workloads/harness/pace.hpp"

#include "runtime/platform/machine.hpp"

#include <algorithm>

namespace loam::workloads {

void Pace::begin(Phase phase, std::uint64_t limit, SegmentLog* log) noexcept {
  phase_ = phase;
  limit_ = limit;
  log_ = log;
  look_at_ = 0;
  looked_ns_ = 0;
}

[[gnu::noinline]] bool Pace::look(std::uint64_t done) noexcept {
  if (done >= limit_ || !in(now_, phase_)) return false;
  if (slice_ns_ == 0) {
    look_at_ = limit_;
    return true;
  }
  const std::uint64_t now_ns = platform::monotonic_ns(), wanted_ns = slice_ns_ / kLooksPerSlice;
  if (looked_ns_ != 0) {
    if (now_ns - looked_ns_ < wanted_ns / 2) {
      step_ = std::min(kStepMax, step_ * 2);
    } else if (now_ns - looked_ns_ > wanted_ns * 2) {
      step_ = std::max<std::uint64_t>(1, step_ / 2);
    }
  }
  looked_ns_ = now_ns;
  if (log_ != nullptr && log_->is_due(now_ns)) {
    log_->close(now_ns, done);
    looked_ns_ = platform::monotonic_ns();
  }
  look_at_ = std::min(limit_, done + step_);
  return true;
}

}  // namespace loam::workloads
