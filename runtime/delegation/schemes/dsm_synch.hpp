// dsm-synch: clients queue, each waiting on its own cell; the first executes the operations of those behind it.
//   Source      Fatourou, Kallimanis: "Revisiting the combining synchronization technique", PPoPP 2012.
//   How         An mcs lock whose holder executes the operations of the clients behind it, except that of the last,
//               which becomes the next combiner. A client waits on its own memory: the scheme is for machines without
//               coherent caches. The published scheme uses two cells per thread in turn; here a cell is not released
//               before its successor is known, so one is enough. If the last client sleeps, its operation is executed
//               too, so that no client waits until it wakes.
//   Guarantees  first come, first served; a combiner does at most turn_max operations for others; D1 to D3.
//   Cost        an exchange; if no client follows, also a compare-and-swap.
//   When not    caches are coherent: cc-synch needs no compare-and-swap.
// Orders
//   dsm.A  the tail: acq_rel when swapped, release when emptied: what the combiner before did, and a cell's empty link.
//   dsm.B  next: release when linked, acquire by the combiner: the operation and the fresh state of the linked cell.
//   waiting.A  state: results, and what the operations before did.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class DsmSynch {
 public:
  static constexpr Description kDescription{
      .name = "dsm-synch",
      .summary = "combining over a queue of clients that wait on cells of their own",
      .paper = "DSM-Synch, PPoPP 2012",
      .guarantees = "mutual exclusion; first come, first served",
      .means = Means::combining};
  static constexpr bool kSleeps = W::kSleeps;

  explicit DsmSynch(const Settings& settings = {}) noexcept
      : waiting_(settings.waiting), turn_max_(settings.turn_max) {}
  DsmSynch(const DsmSynch&) = delete;
  DsmSynch& operator=(const DsmSynch&) = delete;

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    if constexpr (!kIsOnBehalf<F>) {
      if (Executing::anything()) [[unlikely]]
        return apply_on_behalf(*this, f);
    }
    Call<std::remove_reference_t<F>> call(f);
    Cell& cell = Cells::take();
    const GiveBack give_back{cell};
    cell.next.store(nullptr, std::memory_order_relaxed);                          // relaxed: published by dsm.A
    if (Cell* const before = tail_.exchange(&cell, std::memory_order_acq_rel)) {  // dsm.A
      LOAM_POINT("dsm-synch: between exchange and link");
      // No thread reads these before the link; without a client in front, no thread reads them at all.
      cell.state.store(kWaiting, std::memory_order_relaxed);  // relaxed: published by dsm.B
      call.write(cell.operation);                             // published by dsm.B
      before->next.store(&cell, std::memory_order_release);   // dsm.B
      const std::uint32_t state = waiting_.wait(cell, kWaiting);
      if (state != kExecutor) return call.take(state == kThrew, cell.operation.payload);
    }
    const Turn turn{*this, cell};
    return f();
  }

 private:
  enum State : std::uint32_t { kWaiting, kDone, kThrew, kExecutor };

  struct GiveBack {
    ~GiveBack() { Cells::give(cell); }
    Cell& cell;
  };

  // From becoming the executor to handing over. Its own operation comes first, also if that throws.
  struct Turn {
    Turn(DsmSynch& scheme, Cell& own) noexcept : scheme_(scheme), own_(own), executing_(&scheme) {}
    ~Turn() { scheme_.serve_behind(own_); }
    DsmSynch& scheme_;
    Cell& own_;
    const Executing executing_;
  };

  void serve_behind(Cell& own) noexcept {
    // executed: the last one that is; answered unless it is the combiner's own.
    Cell* executed = &own;
    std::uint32_t answer = kDone;
    const auto let_go = [&](Cell* cell) {
      if (cell != &own) waiting_.tell(*cell, answer);
    };
    for (unsigned served = 0; served < turn_max_; ++served) {
      Cell* const next = executed->next.load(std::memory_order_acquire);  // dsm.B
      if (next == nullptr) break;
      // The last one goes on as combiner, unless it sleeps: until it runs again, all would wait for it.
      // relaxed: decides only who executes.
      if (next->next.load(std::memory_order_acquire) == nullptr &&  // dsm.B
          next->sleeping.load(std::memory_order_relaxed) == 0)
        break;
      let_go(executed);
      const Outcome outcome = next->operation.execute();
      answer = outcome.threw ? kThrew : kDone;
      executed = next;
    }
    Cell* next = executed->next.load(std::memory_order_acquire);  // dsm.B
    if (next == nullptr) {
      Cell* last = executed;
      if (tail_.compare_exchange_strong(last, nullptr, std::memory_order_release,
                                        std::memory_order_relaxed)) {  // dsm.A
        let_go(executed);
        return;
      }
      sync::Backoff backoff;
      while ((next = executed->next.load(std::memory_order_acquire)) == nullptr) backoff.wait();  // dsm.B
    }
    let_go(executed);
    waiting_.tell(*next, kExecutor);
  }

  alignas(platform::kApartBytes) std::atomic<Cell*> tail_{nullptr};
  alignas(platform::kApartBytes) const W waiting_;
  const unsigned turn_max_;
};

}  // namespace loam::delegation
