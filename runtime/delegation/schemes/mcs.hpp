// mcs: a queue of waiting threads, each of which waits on a line of its own. A control: each executes its own operation.
//   Source      Mellor-Crummey, Scott: "Algorithms for scalable synchronization on shared-memory multiprocessors", TOCS
//               1991; how sleepers are passed over: Dice: "Malthusian locks", EuroSys 2017.
//   How         If the lock went to a sleeping thread, all would wait until it is woken and gets a processor. So the
//               lock goes to the next thread that is awake; sleeping threads before it are set aside
//               (parts/passed_over.hpp). One of them is woken to queue again when no thread in the queue is awake, or
//               when the lock has changed hands often enough.
//   Guarantees  first come, first served among the threads that are awake; a sleeping one is woken after at most
//               kChangesMax operations of others, one thread at a time; D1 to D3.
//   Cost        an exchange; without a waiting thread also a compare-and-swap.
//   When not    more threads than processors, if the order counts: then `ticket`.
// Orders
//   mcs.A  the tail: acq_rel when swapped, release when emptied: what the last holder did, and a fresh cell's state.
//   mcs.B  next: release when linked, acquire by the holder.  Without it the holder could wake an unmade cell.
//   waiting.A  state: what the holders before did.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/parts/passed_over.hpp"
#include "runtime/delegation/waiting.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Mcs {
 public:
  static constexpr Description kDescription{
      .name = "mcs",
      .summary = "a lock with a queue of waiting threads",
      .paper = "MCS, TOCS 1991",
      .guarantees = "mutual exclusion; first come, first served while all are awake",
      .means = Means::lock};
  static constexpr bool kSleeps = W::kSleeps;

  explicit Mcs(const Settings& settings = {}) noexcept : waiting_(settings.waiting) {}
  Mcs(const Mcs&) = delete;
  Mcs& operator=(const Mcs&) = delete;

  // Holds the lock.
  class Guard {
   public:
    explicit Guard(Mcs& lock) noexcept : lock_(lock), cell_(lock.lock()) {}
    ~Guard() { lock_.unlock(cell_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Mcs& lock_;
    Cell& cell_;
  };

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    Executing::refuse(this);
    const Guard guard(*this);
    const Executing executing(this);
    return f();
  }

 private:
  // kAgain: it was passed over, and is to queue up once more.
  enum State : std::uint32_t { kWaiting, kHolder, kAgain };

  Cell& lock() noexcept {
    Cell& cell = Cells::take();
    if (!queue_up(cell)) [[unlikely]] {
      while (!queue_up(cell)) {
      }
      passed_over_.has_come();
    }
    return cell;
  }

  // returns whether the caller now holds the lock; if not it is to do this again
  bool queue_up(Cell& cell) noexcept {
    cell.next.store(nullptr, std::memory_order_relaxed);                    // relaxed: published by mcs.A
    cell.state.store(kWaiting, std::memory_order_relaxed);                  // relaxed: published by mcs.A
    Cell* const before = tail_.exchange(&cell, std::memory_order_acq_rel);  // mcs.A
    if (before == nullptr) return true;
    LOAM_POINT("mcs: between exchange and link");
    before->next.store(&cell, std::memory_order_release);  // mcs.B
    return waiting_.wait(cell, kWaiting) == kHolder;
  }

  void unlock(Cell& cell) noexcept {
    if (cell.next.load(std::memory_order_acquire) == nullptr && passed_over_.nobody()) {  // mcs.B
      Cell* end = &cell;
      if (tail_.compare_exchange_strong(end, nullptr, std::memory_order_release,
                                        std::memory_order_relaxed)) {  // mcs.A
        Cells::give(cell);
        return;
      }
    }
    hand_over(cell);
  }

  // To the next one that is awake. Not inlined: an uncontended lock does without.
  [[gnu::noinline]] void hand_over(Cell& cell) noexcept {
    Cell* last = &cell;      // of those that are out of the queue from now on
    Cell* called = nullptr;  // back to the queue
    for (;;) {
      Cell* const next = next_of(*last, called);
      if (next == nullptr) break;
      // relaxed: decides only who goes first.
      if (kSleeps && next->sleeping.load(std::memory_order_relaxed) != 0 && !passed_over_.is_called(*next))
          [[unlikely]] {
        passed_over_.add(*next);
        last = next;
        continue;
      }
      if (kSleeps && called == nullptr) called = passed_over_.call_in_time();
      waiting_.tell(*next, kHolder);
      break;
    }
    Cells::give(cell);
    if (called != nullptr) [[unlikely]]
      waiting_.tell(*called, kAgain);
  }

  // The thread behind `last`. Null: there was none, and the lock is free. No later holder may come, so one of the
  // threads that were passed over is called before.
  Cell* next_of(Cell& last, Cell*& called) noexcept {
    Cell* next = last.next.load(std::memory_order_acquire);  // mcs.B
    if (next != nullptr) return next;
    if (kSleeps && called == nullptr) called = passed_over_.call();
    Cell* end = &last;
    if (tail_.compare_exchange_strong(end, nullptr, std::memory_order_release,
                                      std::memory_order_relaxed))  // mcs.A
      return nullptr;
    // Somebody has come between and links itself in a moment.
    sync::Backoff backoff;
    while ((next = last.next.load(std::memory_order_acquire)) == nullptr) backoff.wait();  // mcs.B
    return next;
  }

  alignas(platform::kApartBytes) std::atomic<Cell*> tail_{nullptr};
  alignas(platform::kApartBytes) PassedOver passed_over_;  // the holder's
  alignas(platform::kApartBytes) const W waiting_;
};

}  // namespace loam::delegation
