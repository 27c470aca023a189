// World: the threads of a heap, and how all of them are stopped.
//   A thread runs, or is safe: at a safepoint, in a native region, or not attached. One that wants to collect asks; it
//   goes on when no other thread runs, and what they wrote is visible to it, and what it wrote to them, by the mutex.
//   A running thread sees the request at its next poll (allocation's slow path, growth of a log, Mutator::safepoint()).
//   Cost  a poll: one relaxed load; all else a mutex.
#pragma once

#include "runtime/gc/os_vector.hpp"
#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace loam::gc {

class Mutator;

class World {
 public:
  void attach(Mutator& mutator);
  void detach(Mutator& mutator);

  // relaxed: only whether to look; what follows takes the mutex.
  bool is_stop_requested() const noexcept { return stop_.load(std::memory_order_relaxed); }
  void wait_at_safepoint();
  void enter_native();
  void leave_native();

  // Stops all others. returns false if another thread stopped the world meanwhile: it runs again, and the caller looks
  // anew. took_ns: time until the last one stood still
  bool stop(std::uint64_t& took_ns);
  void resume();

  // While the world is stopped.
  OsVector<Mutator*>& mutators() noexcept { return mutators_; }

 private:
  alignas(platform::kApartBytes) std::atomic<bool> stop_{false};
  alignas(platform::kApartBytes) std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  unsigned running_ = 0;  // attached and not safe
  OsVector<Mutator*> mutators_;
};

}  // namespace loam::gc
