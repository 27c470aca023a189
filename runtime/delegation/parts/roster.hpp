// Roster: the cells of one domain, each lent to a thread: where executors look for requests.
//   A thread joins at its first request, with one cell, and with more while several of its requests are in flight. When
//   it ends, its cells stay in their places for the next thread that joins. The number of threads need not be known.
//   Cost  of a request: two thread-local loads; of looking: one load per place ever taken at the same time.
// Invariants
//   R1 a cell's owner is the roster's number while both sides live; with kLeft once its thread has ended; 0 once the
//      roster is gone. Of the two sides, the one that ends second frees the cell; one compare-and-swap decides.
//   R2 numbers of rosters are never used again, so that what a thread remembers of a dead one is never looked at.
// Orders
//   roster.A  places: release when filled, acquire when looked at.  Without it an executor could see an unmade cell.
//   roster.B  owner: acq_rel on every change.  Without it a thread could get a cell whose last request it does not see.
#pragma once

#include "runtime/delegation/cell.hpp"
#include "runtime/delegation/types.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <atomic>
#include <cstdint>

namespace loam::delegation {

class Roster {
 public:
#ifdef LOAM_CHECKED
  static constexpr std::uint32_t kPlacesMax = 1u << 11;  // so that tests fill it
#else
  static constexpr std::uint32_t kPlacesMax = 1u << 14;
#endif

  Roster();
  ~Roster();
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  // An idle cell of the calling thread in this roster. Throws Full when all places are taken.
  Cell& take() {
    Remembered& known = remembered_[number_ % kRememberedMax];
    if (known.number != number_ || known.idle == nullptr) [[unlikely]]
      return take_slow();
    Cell& cell = *known.idle;
    known.idle = cell.link;
    cell.busy = true;
    return cell;
  }

  // Its request is answered and the answer taken. By the thread that took it.
  void give(Cell& cell) noexcept {
    cell.busy = false;
    Remembered& known = remembered_[number_ % kRememberedMax];
    if (known.number != number_) return;  // found again by a walk over the thread's cells
    cell.link = known.idle;
    known.idle = &cell;
  }

  // Places that may hold a cell: [0, high()).
  std::uint32_t high() const noexcept { return high_.load(std::memory_order_acquire); }  // roster.A
  Cell& at(std::uint32_t place) const noexcept {
    return *places_[place].load(std::memory_order_relaxed);  // relaxed: filled before high() rose (roster.A)
  }

 private:
  static constexpr std::uint64_t kLeft = std::uint64_t{1} << 63;
  static constexpr unsigned kRememberedMax = 8;

  struct Remembered {
    std::uint64_t number;
    Cell* idle;
  };

  Cell& take_slow();
  Cell* join();
  static void leave(void*) noexcept;

  inline static thread_local constinit Remembered remembered_[kRememberedMax] = {};
  inline static thread_local constinit Cell* owned_ = nullptr;  // all cells that rosters lent to this thread
  inline static thread_local constinit bool leaves_at_end_ = false;

  const std::uint64_t number_;
  std::atomic<Cell*>* const places_;
  sync::SpinLock joining_;
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> high_{0};
};

}  // namespace loam::delegation
