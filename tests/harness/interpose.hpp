// Interposition at test points: a chosen interleaving of two threads, exactly.
//   Interpose step("tm.locked", 0, [&] { ... });
//   At the n-th time (0 = the next) that the calling thread reaches the point, the action runs in another thread, and
//   the calling thread goes on when the action has ended. The action must end whatever the stopped thread has locked:
//   it tries a transaction a few times (attempt_update below), never for ever.
// Only in builds with test points (LOAM_CHECKED); LOAM_NEEDS_POINTS() skips a test elsewhere.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithm.hpp"

#include <gtest/gtest.h>

#include <atomic>
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

// Runs body(tx) as one transaction of another thread in the middle of an attempt of the caller's that may have read
// what it writes. It commits, unless the driver's algorithm keeps writers from what others read. returns whether it
// committed
template <class Driver, class Body>
bool commit_amid(Body&& body) {
  bool committed = false;
  std::thread([&] {
    if constexpr (tm::readers_block_writers<typename Driver::Uses>()) {
      committed = attempt_update<Driver>(2, body);
    } else {
      Driver::update(body);
      committed = true;
    }
  }).join();
  return committed;
}

// Makes the next attempt of the calling thread that reads `word` abort once; then `word` has become `value`.
//   Another thread changes it when the attempt has read it and is about to commit. Where nobody can change what an
//   attempt has read, the other thread has written it already and commits when the attempt, not let in, has aborted.
template <class Driver>
class ChangesOnce {
 public:
  ChangesOnce(tm::Word& word, tm::Word value)
      : step_(kBefore ? "tm.aborted" : "tm.committing", 0, [this, &word, value] {
          if (kBefore)
            let_go();
          else
            Driver::update([&](auto& tx) { tx.write(word, value); });
        }) {
    if (!kBefore) return;
    owner_ = std::thread([this, &word, value] {
      const Interpose parked("tm.locked", 0, [this] {
        stage_ = kLocked;
        while (stage_ != kLetGo) platform::yield();
      });
      Driver::update([&](auto& tx) { tx.write(word, value); });
    });
    while (stage_ != kLocked) platform::yield();
  }
  ~ChangesOnce() { let_go(); }

  bool reached() const noexcept { return step_.reached(); }

 private:
  static constexpr bool kBefore = tm::readers_block_writers<typename Driver::Uses>();
  static constexpr int kLocked = 1, kLetGo = 2;

  void let_go() {
    stage_ = kLetGo;
    if (owner_.joinable()) owner_.join();
  }

  std::atomic<int> stage_{0};
  std::thread owner_;
  Interpose step_;
};

}  // namespace loam::tests
