#include "runtime/delegation/cell.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <pthread.h>
#include <mutex>
#include <new>

namespace loam::delegation {
namespace {

constexpr std::size_t kCellsPerChunk = 256;  // 64 KiB

struct Pool {
  sync::OwnedLock lock;
  Cell* free = nullptr;
  Cell* fresh = nullptr;  // of the newest chunk
  std::size_t fresh_left = 0;
  std::atomic<std::size_t> mapped{0};
};
constinit Pool pool;

// Another thread of the parent may have held the lock. The pool is consistent at every moment; at worst a cell is lost.
void after_fork_in_child() {
  if (pool.lock.is_orphaned()) pool.lock.unlock();
}

// Runs when the program is loaded, not at the first cell: a fork during the first cell would run without the handler.
[[gnu::constructor]] void watch_forks() noexcept {
  LOAM_CHECK(::pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0,
             "delegation: no memory for the handler of fork()");
}

}  // namespace

// Gives the thread's cells back when it ends.
struct CellsAtExit {
  ~CellsAtExit() {
    Cells::most_ = 0;  // from now on cells go to the pool at once
    while (Cells::count_ != 0) Cells::give_to_pool(*Cells::own_[--Cells::count_]);
  }
};

Cell& Cells::take_from_pool() noexcept {
  const std::scoped_lock guard(pool.lock);
  LOAM_POINT("delegation.cells");
  if (Cell* const cell = pool.free) {
    pool.free = cell->link;
    return *cell;
  }
  if (pool.fresh_left == 0) {
    pool.fresh = static_cast<Cell*>(platform::map_lazy_or_die(kCellsPerChunk * sizeof(Cell), "cells of delegation"));
    pool.fresh_left = kCellsPerChunk;
    // relaxed: a number for tests.
    pool.mapped.fetch_add(kCellsPerChunk, std::memory_order_relaxed);
  }
  --pool.fresh_left;
  return *::new (static_cast<void*>(pool.fresh++)) Cell;
}

void Cells::give_to_pool(Cell& cell) noexcept {
  const std::scoped_lock guard(pool.lock);
  cell.link = pool.free;
  pool.free = &cell;
}

std::size_t Cells::mapped() noexcept { return pool.mapped.load(std::memory_order_relaxed); }

Cell& Cells::take_slow() noexcept {
  if (most_ != 0) {
    static thread_local CellsAtExit at_exit;
    [[maybe_unused]] auto* const made = &at_exit;  // odr-use: constructs it for this thread
  }
  return take_from_pool();
}

}  // namespace loam::delegation
