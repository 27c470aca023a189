// ThreadEnd: a function that is called when a thread ends which has asked for it, and others around a fork.
#pragma once

#include <pthread.h>
#include <atomic>

namespace loam::design {

class ThreadEnd {
 public:
  // Once, before the first watch(); may be called by several threads at once.
  void start(void (*at_end)(void*), void (*before_fork)(), void (*after_fork)()) noexcept {
    if (started_.exchange(true, std::memory_order_relaxed)) return;  // relaxed: the first one does it
    // thread_end.A: release, with the acquire in watch(): who finds it ready finds the key.
    if (pthread_key_create(&key_, at_end) == 0) ready_.store(true, std::memory_order_release);
    pthread_atfork(before_fork, after_fork, after_fork);
  }
  // The calling thread hands `what` over when it ends. Without a key left in the system, its memory stays its own.
  void watch(void* what) noexcept {
    if (ready_.load(std::memory_order_acquire)) pthread_setspecific(key_, what);  // thread_end.A
  }

 private:
  std::atomic<bool> started_{false}, ready_{false};
  pthread_key_t key_{};
};

}  // namespace loam::design
