// CombiningList: a queue of clients, which they join by one exchange. The first client executes the operations of those
// behind it, and then hands over to the next. CC-Synch has one list, H-Synch several behind a lock.
// Orders
//   list.A  the exchange of the tail: acq_rel.  Its release makes the fresh cell's state visible to who announces
//           itself there next; its acquire is that one's.  Without it a client could take its cell's old state for an
//           answer.
//   list.B  next: release when linked, acquire by the combiner.  Without it the combiner could run an old operation.
//   waiting.A  state: what the operations before did, and their results.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W>
class CombiningList {
 public:
  explicit CombiningList(const Settings& settings) noexcept
      : tail_(&Cells::take_from_pool()), waiting_(settings.waiting), turn_max_(settings.turn_max) {
    Cell& last = *tail_.load(std::memory_order_relaxed);  // relaxed: nobody else knows this object
    last.next.store(nullptr, std::memory_order_relaxed);
    last.state.store(kExecutor, std::memory_order_relaxed);
  }
  CombiningList(const CombiningList&) = delete;
  CombiningList& operator=(const CombiningList&) = delete;
  // No client may be inside.
  ~CombiningList() { Cells::give_to_pool(*tail_.load(std::memory_order_relaxed)); }  // relaxed: nobody else is there

  // domain: whose operations these are, and that it may be asked now is known; outer(): makes what a combiner holds during its turn
  template <class F, class MakeOuter>
  std::invoke_result_t<F&> apply(const void* domain, F& f, MakeOuter&& outer) {
    Cell& fresh = Cells::take();
    fresh.next.store(nullptr, std::memory_order_relaxed);             // relaxed: published by list.A
    fresh.state.store(kWaiting, std::memory_order_relaxed);           // relaxed: published by list.A
    Cell& cell = *tail_.exchange(&fresh, std::memory_order_acq_rel);  // list.A
    const GiveBack give_back{cell};
    LOAM_POINT("combining list: between exchange and link");
    if (cell.state.load(std::memory_order_acquire) != kExecutor) {  // waiting.A
      Call<std::remove_reference_t<F>> call(f);
      call.write(cell.operation);
      cell.next.store(&fresh, std::memory_order_release);  // list.B
      const std::uint32_t state = waiting_.wait(cell, kWaiting);
      if (state != kExecutor) return call.take(state == kThrew, cell.operation.payload);
    }
    const HandOver hand_over{*this, fresh};
    [[maybe_unused]] const auto held = outer();
    const Turn turn{hand_over, domain};
    return f();
  }

 private:
  enum State : std::uint32_t { kWaiting, kDone, kThrew, kExecutor };

  struct GiveBack {
    ~GiveBack() { Cells::give(cell); }
    Cell& cell;
  };

  // The cell from which the next combiner goes on.
  struct HandOver {
    HandOver(CombiningList& list, Cell& first) noexcept : list_(list), cell_(&first) {}
    ~HandOver() { list_.waiting_.tell(*cell_, kExecutor); }
    CombiningList& list_;
    mutable Cell* cell_;
  };

  // After its own operation, also one that throws, a combiner executes those of others.
  struct Turn {
    Turn(const HandOver& hand_over, const void* domain) noexcept : hand_over_(hand_over), executing_(domain) {}
    [[gnu::always_inline]] ~Turn() {
      if (hand_over_.cell_->next.load(std::memory_order_relaxed) != nullptr)  // relaxed: looked at again (list.B)
        hand_over_.cell_ = hand_over_.list_.serve_from(hand_over_.cell_);
    }
    const HandOver& hand_over_;
    const Executing executing_;
  };

  // returns the first cell that was not served
  Cell* serve_from(Cell* cell) noexcept {
    for (unsigned served = 0; served < turn_max_; ++served) {
      Cell* const next = cell->next.load(std::memory_order_acquire);  // list.B
      if (next == nullptr) break;
      __builtin_prefetch(next, 1);
      const Outcome outcome = cell->operation.execute();
      LOAM_POINT("combining list: before an answer");
      waiting_.tell(*cell, outcome.threw ? kThrew : kDone);  // from here on the cell is its client's
      cell = next;
    }
    return cell;
  }

  alignas(platform::kApartBytes) std::atomic<Cell*> tail_;
  alignas(platform::kApartBytes) const W waiting_;
  const unsigned turn_max_;
};

}  // namespace loam::delegation
