// What the tests of privatization share: data, a word that says whose it is, and gates between threads.
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/tm/types.hpp"

#include <atomic>

namespace loam::tm {

// In one array, so that no two share a record of the small table: shared says who may use data[].
alignas(1024) inline Word words[64];
inline Word& shared_flag = words[0];
inline Word& data = words[16];
inline Word& data_too = words[32];

inline constexpr Word kShared = 1, kPrivate = 0;

// Opened by one thread, waited for by another; gives up after a while, for with a right runtime the other may be the
// one that waits.
class Gate {
 public:
  void open() { open_.store(true, std::memory_order_release); }
  bool wait() const {
    const auto deadline = platform::monotonic_ns() + 100'000'000;
    while (!open_.load(std::memory_order_acquire)) {
      if (platform::monotonic_ns() > deadline) return false;
      platform::sleep_ns(100'000);
    }
    return true;
  }

 private:
  std::atomic<bool> open_{false};
};

}  // namespace loam::tm
