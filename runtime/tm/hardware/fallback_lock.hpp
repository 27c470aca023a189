// FallbackLock: the lock that hardware attempts read and others take.
//   An attempt that has read it as free aborts as soon as another thread takes it: the processor detects the write to
//   its line.
//   Cost  one exchange.   When not: many transactions that fall back; it is not fair.
// Memory orders; in brackets the failure without the pair
//   fallback.A  unlock()'s store(release) / lock()'s exchange(acquire), held()'s load(acquire)
//               [the next owner, or an attempt, reads what was there before the last owner's writes]
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>
#include <cstdint>

namespace loam::tm::hardware {

class alignas(platform::kApartBytes) FallbackLock {
 public:
  void lock() noexcept {
    // An exchange writes, and would abort every attempt even if it fails. So the lock is read first.
    do wait_until_free();
    while (state_.exchange(1, std::memory_order_acquire) != 0);  // fallback.A
  }
  void unlock() noexcept { state_.store(0, std::memory_order_release); }  // fallback.A

  bool held() const noexcept { return state_.load(std::memory_order_acquire) != 0; }  // fallback.A

  // Call outside of an attempt: an attempt that begins while the lock is held only aborts again, and its transaction
  // falls back like the one before it (the lemming effect).
  void wait_until_free() const noexcept {
    sync::Backoff backoff;
    while (held()) backoff.wait();
  }

 private:
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace loam::tm::hardware
