// Found<T>: what a function finds at its first use, without a lock.
//   static constinit base::Found<bool> works;
//   if (works.get([] { return try_it(); })) ...
//   A local static that is not constinit has a guard, which is a lock: the child of a fork in the middle of its first use
//   would wait for a thread that it has not.
//   Guarantees  nobody waits. Threads that come while the value is not there yet look for it as well, each by itself.
//   Cost        as a local static: one load and a compare.
//   When not    values that differ from look to look and must be the same for all; what may be made only once.
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
  // The value; find() is called where none is known.
  template <class F>
  T get(F find) noexcept {
    if (state_.load(std::memory_order_acquire) == State::known) [[likely]]  // found.A
      return value_;
    const T own = find();
    State unknown = State::unknown;
    // relaxed: whoever loses has a value of its own. In a child forked before the store below nobody wins any more.
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
