// What the tests of waiting transactions share.
#pragma once

#include "tests/harness/tm_variants.hpp"

#include <atomic>

namespace loam::tm::waiters {

template <class Driver>
void set(Word& word, Word value) {
  Driver::update([&](auto& tx) { tx.write(word, value); });
}

inline void wait_until(const std::atomic<int>& count, int value) {
  while (count.load() < value) platform::yield();
}

// Whether a waiter may run in vain: then it is woken by commits that change nothing of what it has read.
template <class Driver>
bool runs_in_vain() {
  return any_commit_wakes<typename Driver::Uses>() && !switching::scales();
}

// Long enough for a thread that has counted its attempt to have gone to sleep, mostly. No test depends on it.
inline void let_it_sleep() { platform::sleep_ns(3'000'000); }

}  // namespace loam::tm::waiters
