// PassedOver: those of a lock's queue that slept when it was their turn, the first first. The holder's alone.
//   One at a time is called: told to queue up again. Until it has held the lock nobody else is called: so there are never
//   many that have just been woken. Whoever was called is not passed over a second time.
// Invariant
//   P1 while somebody is passed over and nobody holds the lock or stands in its queue, one that was called is on its way to
//      the queue, awake. So nobody sleeps for ever.
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

  // Whom to call once the lock is out of the holder's hands; null if there is nobody, or one is on its way.
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
