// mutex: std::mutex, which every program has. A control: each thread executes its own operation.
//   Source      the C library's, which sleeps in the kernel as soon as it is contended.
//   Guarantees  D1 to D3; not fair.   Cost  two atomic exchanges; a system call if a thread waits.
//   When not    short operations that are contended all the time.   The waiting policy does not apply.
//   Orders      the mutex's own.
#pragma once

#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"

#include <mutex>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Mutex {
 public:
  static constexpr Description kDescription{
      .name = "mutex", .summary = "std::mutex", .paper = "", .guarantees = "mutual exclusion", .means = Means::lock};
  static constexpr bool kSleeps = true;

  explicit Mutex(const Settings& = {}) noexcept {}

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    Executing::refuse(this);
    const std::lock_guard guard(mutex_);
    const Executing executing(this);
    return f();
  }

 private:
  alignas(platform::kApartBytes) std::mutex mutex_;
};

}  // namespace loam::delegation
