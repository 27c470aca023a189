// Interposition at test points: a chosen interleaving of two threads, exactly.
//   Interpose step("tm.locked", 0, [&] { ... });
//   At the n-th time (0 = the next) that the calling thread reaches the point, the action runs in another thread, and
//   the calling thread goes on when the action has ended. The action must end whatever the stopped thread has locked:
//   it tries a transaction a few times (attempt_update below), never for ever.
// Only in builds with test points (LOAM_CHECKED); LOAM_NEEDS_POINTS() skips a test elsewhere.
#pragma once

#include "runtime/base/points.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifdef LOAM_CHECKED
#define LOAM_NEEDS_POINTS() (void)0
#else
#define LOAM_NEEDS_POINTS() GTEST_SKIP() << "this build has no test points"
#endif

namespace loam::tests {

class Interpose {
 public:
  Interpose(std::string_view point, unsigned skip, std::function<void()> action)
      : point_(point), skip_(skip), action_(std::move(action)) {
    steps().push_back(this);
#ifdef LOAM_CHECKED
    base::point_hook.store(&Interpose::reach, std::memory_order_release);
#endif
  }
  Interpose(const Interpose&) = delete;
  Interpose& operator=(const Interpose&) = delete;
  ~Interpose() { std::erase(steps(), this); }

  bool reached() const noexcept { return reached_; }

 private:
  // Steps of one thread: other threads pass every point.
  static std::vector<Interpose*>& steps() {
    thread_local std::vector<Interpose*> list;
    return list;
  }

  [[maybe_unused]] static void reach(const char* name) {
    for (Interpose* step : steps()) {
      if (step->reached_ || step->point_ != name) continue;
      if (step->skip_ > 0) {
        --step->skip_;
        continue;
      }
      step->reached_ = true;
      std::thread(step->action_).join();
      return;
    }
  }

  std::string_view point_;
  unsigned skip_;
  std::function<void()> action_;
  bool reached_ = false;
};

struct GaveUp {};

// Runs body(tx) as one transaction that is given up after `attempts_max` aborts. returns whether it committed
template <class Driver, class Body>
bool attempt_update(unsigned attempts_max, Body&& body) {
  unsigned attempts = 0;
  try {
    Driver::update([&](auto& tx) {
      if (attempts++ == attempts_max) throw GaveUp{};
      body(tx);
    });
    return true;
  } catch (const GaveUp&) {
    return false;
  }
}

}  // namespace loam::tests
