// How the tests of the structures run an operation: alone, under a lock, in a transaction.
#pragma once

#include <gtest/gtest.h>

#include "runtime/tm/tm.hpp"
#include "structures/plain_access.hpp"
#include "structures/sets.hpp"

#include <cstdint>
#include <mutex>

namespace loam::structures {

struct Alone {
  template <class F>
  static auto update(F&& f) {
    PlainAccess access;
    return f(access);
  }
  template <class F>
  static auto read_only(F&& f) {
    return update(f);
  }
  static void thread_exit() { PlainAccess::hand_over_counts(); }
  static std::int64_t live_blocks() { return PlainAccess::live_blocks(); }
};

struct Locked {
  template <class F>
  static auto update(F&& f) {
    const std::lock_guard guard(mutex);
    PlainAccess access;
    return f(access);
  }
  template <class F>
  static auto read_only(F&& f) {
    return update(f);
  }
  static void thread_exit() { PlainAccess::hand_over_counts(); }
  static std::int64_t live_blocks() { return PlainAccess::live_blocks(); }

 private:
  inline static std::mutex mutex;
};

struct Transaction {
  template <class F>
  static auto update(F&& f) {
    return tm::atomically(f);
  }
  template <class F>
  static auto read_only(F&& f) {
    return tm::atomically(tm::read_only, f);
  }
  static void thread_exit() { tm::thread_exit(); }
  static std::int64_t live_blocks() {
    tm::quiesce();
    const auto all = tm::statistics_of_all();
    return static_cast<std::int64_t>(all.blocks_allocated - all.blocks_freed);
  }
};

// What transactions have freed goes back before a sanitizer looks for leaks: a thread that ends while another one reads
// leaves its freed blocks to whoever comes next.
struct GivesBack : testing::Environment {
  void TearDown() override { tm::quiesce(); }
};
[[maybe_unused]] inline const auto* const gives_back = testing::AddGlobalTestEnvironment(new GivesBack);

// One combination of a runner and a structure.
template <class RunnerType, class SetType>
struct Combination {
  using Runner = RunnerType;
  using Set = SetType;
};

template <class Runner, class Set>
bool insert(Set& set, std::int64_t key) {
  return Runner::update([&](auto& access) { return set.insert(access, key); });
}
template <class Runner, class Set>
bool remove(Set& set, std::int64_t key) {
  return Runner::update([&](auto& access) { return set.remove(access, key); });
}
template <class Runner, class Set>
bool contains(Set& set, std::int64_t key) {
  return Runner::read_only([&](auto& access) { return set.contains(access, key); });
}

}  // namespace loam::structures
