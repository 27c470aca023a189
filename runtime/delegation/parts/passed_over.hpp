// PassedOver: the threads of a lock's queue that slept when it was their turn, in order. Only the lock's holder
//   accesses it. The holder calls one of them at a time: it wakes the thread, which then queues again. No other one is
//   called until that thread has held the lock, so few threads have just been woken. A thread that was called is not
//   passed over again.
// Invariant
//   P1 while a thread is passed over, and no thread holds the lock or waits in its queue, one called thread is awake
//      and on its way to the queue. So no thread sleeps for ever.
#pragma once

#include "runtime/delegation/cell.hpp"

namespace loam::delegation {

class PassedOver {
 public:
  // The lock changes hands this often before one is called though others are awake: that takes some 0.2 ms, of which waking
  // one is a hundredth.
  static constexpr unsigned kChangesMax = 1024;

  // The holder takes it out of the queue.
  void add(Cell& cell) noexcept {
    cell.link = nullptr;
    (last_ == nullptr ? first_ : last_->link) = &cell;
    last_ = &cell;
  }

  // The thread to call after the holder has released the lock; null if there is none, or if one is on its way.
  Cell* call() noexcept {
    if (first_ == nullptr || called_ != nullptr) [[likely]]
      return nullptr;
    called_ = first_;
    first_ = first_->link;
    if (first_ == nullptr) last_ = nullptr;
    changes_ = 0;
    return called_;
  }
  // The same when it is time to.
  Cell* call_in_time() noexcept {
    if (first_ == nullptr || ++changes_ < kChangesMax) [[likely]]
      return nullptr;
    return call();
  }

  bool nobody() const noexcept { return first_ == nullptr; }
  bool is_called(const Cell& cell) const noexcept { return &cell == called_; }
  // By the one that was called, when it holds the lock.
  void has_come() noexcept { called_ = nullptr; }

 private:
  Cell* first_ = nullptr;
  Cell* last_ = nullptr;
  Cell* called_ = nullptr;
  unsigned changes_ = 0;
};

}  // namespace loam::delegation
