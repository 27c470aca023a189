// World: the threads of a heap, and how all of them are stopped.
//   A thread runs, or is safe: at a safepoint, in a native region, or not attached. One that wants to collect asks; it
//   goes on when no other thread runs, and what they wrote is visible to it, and what it wrote to them, by the mutex.
//   A running thread sees the request at its next poll (allocation's slow path, growth of a log, Mutator::safepoint()).
//   Several Mutators of one thread run and are safe together: the first one that is left counts for all (its leader).
//   A thread that waits here for one heap is safe in all other heaps that it uses. Otherwise two threads that collect
//   two heaps, both of which they use, would wait for each other.
//   Cost  a poll: one relaxed load; all else a mutex.
//   Invariants
//   W2 running_ is the number of leaders whose natives is 0.   W3 natives changes with the mutex, in its own thread.
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
  // What the worlds keep of a Mutator.
  struct Member {
    Mutator *leader = nullptr, *next_of_thread = nullptr;
    unsigned natives = 0;  // of a leader: native regions in which its thread is, one inside of the other
  };

  void attach(Mutator& mutator);
  void detach(Mutator& mutator);

  // relaxed: only whether to look; what follows takes the mutex.
  bool is_stop_requested() const noexcept { return stop_.load(std::memory_order_relaxed); }
  void wait_at_safepoint(Mutator& mutator);
  void enter_native(Mutator& mutator);
  void leave_native(Mutator& mutator);

  // Stops all others. returns false if another thread stopped the world meanwhile: it runs again, and the caller looks
  // anew. took_ns: time until the last one stood still
  bool stop(Mutator& mutator, std::uint64_t& took_ns);
  void resume(Mutator& mutator);

  // Around a fork (fork.cpp), by a thread that may have a Mutator here: stops the others, then lets them run again.
  void stop_for_fork();
  void lock_for_fork() { mutex_.lock(); }
  void resume_after_fork(bool in_child);
  static void poll_all_of_this_thread();
  // In the child: whether the Mutator belongs to this thread, the only one that is left.
  static bool is_of_this_thread(const Mutator& mutator) noexcept;

  // While the world is stopped.
  OsVector<Mutator*>& mutators() noexcept { return mutators_; }

 private:
  Mutator* leader_of_this_thread() const noexcept;
  void enter_elsewhere();
  void leave_elsewhere();

  alignas(platform::kApartBytes) std::atomic<bool> stop_{false};
  alignas(platform::kApartBytes) std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  unsigned running_ = 0;
  OsVector<Mutator*> mutators_;
};

}  // namespace loam::gc
