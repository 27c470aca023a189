// Found<T>: a value that a function computes when it is first needed, without a lock.
//   static constinit base::Found<bool> works;
//   if (works.get([] { return try_it(); })) ...
//   Why not a local static: unless it is constinit, it has a guard, which is a lock. If a process forks while another
//   thread holds the guard, the child waits for ever: that thread does not exist in the child.
//   Guarantees  no thread waits. Threads that call get() before the value is stored each call the function themselves.
//   Cost        as a local static: one load and a compare.
//   When not    the function returns different values and all threads need the same one, or it must run only once.
// Memory orders; in brackets the failure without the pair
//   found.A  state's store(release) / load(acquire) [the state is known, the value is not]
#pragma once

#include "runtime/base/points.hpp"

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace loam::base {

template <class T>
class Found {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // returns the value; calls find() if no thread has stored one yet
  template <class F>
  T get(F find) noexcept {
    if (state_.load(std::memory_order_acquire) == State::known) [[likely]]  // found.A
      return value_;
    const T own = find();
    State unknown = State::unknown;
    // relaxed: a thread that loses returns its own value. A child that was forked between this and the store below
    // never stores a value, so each of its calls runs find().
    if (state_.compare_exchange_strong(unknown, State::written, std::memory_order_relaxed)) {
      LOAM_POINT("base.found");
      value_ = own;
      state_.store(State::known, std::memory_order_release);  // found.A
    }
    return own;
  }

 private:
  enum class State : std::uint8_t { unknown, written, known };

  std::atomic<State> state_{State::unknown};
  T value_{};
};

}  // namespace loam::base
