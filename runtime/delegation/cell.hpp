// Cell: the cache lines by which a client and an executor exchange a request and its answer; and the pool of cells.
//   The first cache line has the request and the answer. The second line says who owns the cell: it changes only when
//   threads start or end, and both sides read it. The client's own notes lie a pair of lines further, because
//   processors fetch lines in pairs: so an executor's reads never take these notes from the client's cache.
//   Cells come from OS pages, never from the process's allocator, and stay mapped for ever. So a late read of a cell
//   that another client uses by now is harmless. A thread keeps some free cells and returns them when it ends. So
//   threads may start and end, and their number need not be known.
#pragma once

#include "runtime/delegation/operation.hpp"
#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::delegation {

struct alignas(platform::kApartBytes) Cell {
  std::atomic<Cell*> next{nullptr};
  std::atomic<std::uint32_t> state{0};
  std::atomic<std::uint32_t> sleeping{0};  // not 0: whoever changes the state wakes
  Operation operation{};

  // Of the roster that it is in, with the marks of roster.hpp; 0: of none.
  alignas(platform::kCacheLineBytes) std::atomic<std::uint64_t> owner{0};
  Cell* partner = nullptr;  // where answers come from, if not from here
  std::uint32_t place = 0;  // in the roster

  // The client's own.
  alignas(platform::kApartBytes) Cell* link = nullptr;  // of the list that it is in: the pool's, or a thread's
  Cell* owned = nullptr;                                // of all cells in rosters that belong to one thread
  std::uint32_t toggled = 0;                            // of schemes that count requests: the client's own
  bool busy = false;                                    // of a roster's: lent out and not idle
};
static_assert(offsetof(Cell, operation) + sizeof(Operation) == platform::kCacheLineBytes);

// The calling thread's own free cells. A thread uses as many at a time as its operations are nested.
//   Their addresses stand in the thread's memory, not in the cells: of a cell that comes from another thread nothing is
//   touched but the line that was exchanged anyhow.
class Cells {
 public:
  static Cell& take() noexcept {
    if (count_ == 0) [[unlikely]]
      return take_slow();
    return *own_[--count_];
  }

  static void give(Cell& cell) noexcept {
    if (count_ == most_) [[unlikely]]
      return give_to_pool(cell);
    own_[count_++] = &cell;
  }

  // For those who have no thread, and in place of give() where many come at once.
  static Cell& take_from_pool() noexcept;
  static void give_to_pool(Cell& cell) noexcept;

  // Mapped so far, of all threads: for tests.
  static std::size_t mapped() noexcept;

 private:
  friend struct CellsAtExit;

  static constexpr unsigned kOwnMax = 8;  // deeper ones go to the pool and come from there

  static Cell& take_slow() noexcept;

  inline static thread_local constinit Cell* own_[kOwnMax] = {};
  inline static thread_local constinit unsigned count_ = 0;
  inline static thread_local constinit unsigned most_ = kOwnMax;  // 0: the thread's objects are being destroyed
};

}  // namespace loam::delegation
