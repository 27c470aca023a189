// clones: which functions have a transactional clone. Each shared object registers its table as it is loaded, perhaps
// before this library's constructors have run, so everything here is initialised statically.
// Memory orders; in brackets the failure without the pair
//   clones.A  head's store(release) of a new table / load(acquire) in find() [a table read before it was sorted]
#include "runtime/base/check.hpp"
#include "runtime/itm/interface.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

namespace loam::itm {
namespace {

struct Pair {
  void *original, *clone;
};

struct Table {
  std::atomic<Pair*> pairs;  // null once its shared object is gone
  std::size_t count;
  Table* next;
};

constinit sync::SpinLock lock;  // of who changes the list
constinit std::atomic<Table*> head{nullptr};

void* find(void* function) noexcept {
  for (const Table* table = head.load(std::memory_order_acquire); table != nullptr; table = table->next) {  // clones.A
    Pair* const pairs = table->pairs.load(std::memory_order_acquire);
    if (pairs == nullptr) continue;
    Pair* const end = pairs + table->count;
    Pair* const found =
        std::lower_bound(pairs, end, function, [](const Pair& pair, void* wanted) { return pair.original < wanted; });
    if (found != end && found->original == function) return found->clone;
  }
  return nullptr;
}

}  // namespace

LOAM_ITM_EXPORTED void _ITM_registerTMCloneTable(void* start, std::size_t count) {
  auto* const pairs = static_cast<Pair*>(start);
  std::sort(pairs, pairs + count, [](const Pair& a, const Pair& b) { return a.original < b.original; });
  auto* const table = static_cast<Table*>(std::malloc(sizeof(Table)));
  LOAM_CHECK(table != nullptr, "libitm: no memory for a table of {} clones", count);
  const std::lock_guard guard(lock);
  ::new (static_cast<void*>(table)) Table{{pairs}, count, head.load(std::memory_order_relaxed)};  // relaxed: own lock
  head.store(table, std::memory_order_release);                                                   // clones.A
}

// The table's entry stays in the list, because another thread may be reading the list.
LOAM_ITM_EXPORTED void _ITM_deregisterTMCloneTable(void* start) {
  const std::lock_guard guard(lock);
  for (Table* table = head.load(std::memory_order_relaxed); table != nullptr; table = table->next)  // relaxed: own lock
    if (table->pairs.load(std::memory_order_relaxed) == start)                                      // relaxed: own lock
      return table->pairs.store(nullptr, std::memory_order_release);
}

// returns the clone; without one the function itself, and the transaction becomes irrevocable
LOAM_ITM_EXPORTED void* _ITM_getTMCloneOrIrrevocable(void* function) {
  if (void* const clone = find(function)) return clone;
  _ITM_changeTransactionMode(0);
  return function;
}

LOAM_ITM_EXPORTED void* _ITM_getTMCloneSafe(void* function) {
  void* const clone = find(function);
  LOAM_CHECK(clone != nullptr,
             "libitm: the function at {} is called in an atomic transaction and has no transactional "
             "clone; mark it transaction_safe and compile it with -fgnu-tm",
             static_cast<const void*>(function));
  return clone;
}

}  // namespace loam::itm
