#include "runtime/tm/records/stripes.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace loam::tm::stripes {

constinit WriteLocks write_locks;
constinit Readers readers;

namespace {

constinit sync::SpinLock making;
// What is tried where 2^kWriteLockBitsMax locks are refused.
constexpr unsigned kWriteLockBits[] = {kWriteLockBitsMax, 30, kRecordsLog2Max};

}  // namespace

void make_write_locks() noexcept {
  const std::lock_guard guard(making);  // stripes.A: who attaches later sees what this one stores
  if (write_locks.base != nullptr) return;
  const std::uint64_t records = shared.map.capacity();
  for (const unsigned bits : kWriteLockBits) {
    const std::uint64_t locks = std::min(records, std::uint64_t{1} << bits);
    void* const base =
        platform::map_lazy(locks * sizeof(Orec), {.huge_pages = !shared.map.is_sparse(), .core_dump = false});
    if (base == nullptr) continue;
    write_locks = {static_cast<Orec*>(base), locks - 1};
    return;
  }
  LOAM_FATAL("tm: no address space for the write locks of {} stripes; raise `ulimit -v`, or take a smaller table",
             records);
}

void WriteLocks::touch() const noexcept {
  if (!shared.map.is_sparse()) std::memset(static_cast<void*>(base), 0, (mask + 1) * sizeof(Orec));
}

Indicators* make_indicators(unsigned slot) noexcept {
  const std::uint64_t bits = std::min(shared.map.capacity(), std::uint64_t{1} << kIndicatorBits);
  void* const base =
      platform::map_lazy_or_die(bits / 8, "tm: read indicators of a thread", {.huge_pages = false, .core_dump = false});
  auto* const indicators = static_cast<Indicators*>(base);
  // stripes.B: seq_cst, before the thread's first indicator; a writer that looks for that one looks at these first.
  readers.of_slot[slot].store(indicators, std::memory_order_seq_cst);
  unsigned end = readers.end.load(std::memory_order_relaxed);  // relaxed: the CAS decides
  while (end <= slot && !readers.end.compare_exchange_weak(end, slot + 1, std::memory_order_seq_cst)) {
  }
  return indicators;
}

}  // namespace loam::tm::stripes
