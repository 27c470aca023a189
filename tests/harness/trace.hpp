// Trace: the test points that a thread passes, in order, with an action of the test's at any of them.
//   Only in builds with test points (LOAM_CHECKED). One at a time per thread; instead of Interpose, which uses the same
//   hook.
#pragma once

#include "runtime/base/points.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loam::tests {

// The test points that the calling thread passes, with an action at the n-th of a name (from 1).
class Trace {
 public:
  using Action = std::function<void(std::string_view point, unsigned nth)>;

  explicit Trace(Action action = {}) : action_(std::move(action)) {
    current() = this;
#ifdef LOAM_CHECKED
    base::point_hook.store(&Trace::reach, std::memory_order_release);
#endif
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { current() = nullptr; }

  unsigned count(std::string_view point) const {
    return static_cast<unsigned>(std::count(points_.begin(), points_.end(), point));
  }
  // Of waits, those between the begin of an attempt and its end.
  unsigned waits_inside() const { return waits(true); }
  unsigned waits_outside() const { return waits(false); }

 private:
  static Trace*& current() {
    thread_local Trace* trace = nullptr;
    return trace;
  }
  [[maybe_unused]] static void reach(const char* name) {
    Trace* const trace = current();
    if (trace == nullptr) return;
    trace->points_.emplace_back(name);
    if (trace->action_) trace->action_(name, trace->count(name));
  }
  unsigned waits(bool wanted) const {
    bool inside = false;
    unsigned found = 0;
    for (const std::string& point : points_) {
      if (point == "tm.began") inside = true;
      if (point == "tm.aborted") inside = false;
      found += point == "tm.waiting" && inside == wanted;
    }
    return found;
  }

  std::vector<std::string> points_;
  Action action_;
};

}  // namespace loam::tests
