#include "runtime/tm/attempts/contention.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm::contention {
namespace {

constinit std::atomic<std::uint64_t> tickets{0};

// Waits until over() or until `limit_ns` have passed. returns whether over() became true
template <class Over>
bool wait_until(std::uint64_t limit_ns, Over&& over) noexcept {
  if (over()) return true;
  const std::uint64_t deadline = platform::monotonic_ns() + limit_ns;
  sync::Backoff backoff;
  while (platform::monotonic_ns() < deadline) {
    LOAM_POINT("tm.waiting");
    backoff.wait();
    if (over()) return true;
  }
  return false;
}

// Waits until `record`, which was `seen` locked, is free, whoever has it meanwhile.
// returns false if the same lock was on it all the time
bool wait_until_free(const Orec& record, std::uint64_t seen) noexcept {
  bool moved = false;
  wait_until(waits.free_ns, [&] {
    // relaxed: who goes on reads the record again, with acquire
    const std::uint64_t now = record.load(std::memory_order_relaxed);
    moved |= now != seen;
    return !is_locked(now);
  });
  return moved;
}

// Priorities are hints: relaxed. At worst two wait for each other until one sees the other's, or until the bound.
void publish(Descriptor& d, std::uint64_t priority) noexcept {
  d.contention.priority.store(priority, std::memory_order_relaxed);
}
std::uint64_t priority_of(const Descriptor& d) noexcept {
  return d.contention.priority.load(std::memory_order_relaxed);
}

// Of two with the same priority the lower slot has the higher one; who has none goes before nobody.
bool goes_before(const Descriptor& d, unsigned owner) noexcept {
  const Descriptor* const other = Descriptor::of_slot(owner);
  const std::uint64_t mine = priority_of(d), theirs = other == nullptr ? 0 : priority_of(*other);
  return mine > theirs || (mine == theirs && mine != 0 && d.slot < owner);
}

// What the running attempt has read and written. Attempts that only read keep no log.
std::uint64_t work_of(const Descriptor& d) noexcept {
  if (d.mode == Mode::read_only) return 0;
  return static_cast<std::uint64_t>(d.read_cursor - d.reads.begin()) +
         static_cast<std::uint64_t>(d.write_end - d.writes.begin());
}

}  // namespace

bool wait_for_owner(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept {
  const Manager manager = shared.config.manager;
  if (manager != Manager::karma && manager != Manager::timestamp) return false;
  // Work counts as it is done, but the others learn of it where two meet and not at every access.
  if (manager == Manager::karma) publish(d, d.contention.earned + work_of(d));
  bool changed = false;
  wait_until(waits.owner_ns, [&] {
    changed = record.load(std::memory_order_relaxed) != seen;  // relaxed: as in wait_until_free()
    return changed || !goes_before(d, owner_of(seen));
  });
  if (manager == Manager::karma) publish(d, d.contention.earned);
  return changed;
}

void lost(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept {
  Contention& own = d.contention;
  own.record = &record;
  own.seen = seen;
  if (shared.config.manager == Manager::karma) {
    own.earned += 1 + work_of(d);  // 1: who has done nothing yet but aborts again and again rises as well
    publish(d, own.earned);
  } else if (shared.config.manager == Manager::timestamp && priority_of(d) == 0) {
    publish(d, ~tickets.fetch_add(1, std::memory_order_relaxed));  // relaxed: each ticket is given once
  }
}

void before_retry(Descriptor& d, unsigned aborts) noexcept {
  Contention& own = d.contention;
  if (shared.config.manager == Manager::pure_suicide) {
    own.record = nullptr;
    return;
  }
  const bool met_a_lock = own.record != nullptr && is_locked(own.seen);
  if (shared.config.manager == Manager::backoff) {
    const auto below = static_cast<std::uint32_t>(backoff_ns_below(aborts));
    wait_until(own.random.below(below), [] { return false; });
  }
  if (met_a_lock && (shared.config.manager == Manager::delay || aborts >= kEagerRetries)) {
    if (!wait_until_free(*own.record, own.seen)) ++own.stalls;
  } else if (aborts % kEagerRetries == 0) {
    platform::yield();
  }
  own.record = nullptr;
}

void excuse(Descriptor& d) noexcept { ++d.contention.stalls; }

bool runs_alone(Descriptor& d, unsigned aborts) noexcept {
  const unsigned limit = shared.config.serialise_after;
  if (shared.config.manager == Manager::pure_suicide) return false;
  if (limit == 0 || aborts < limit + d.contention.stalls) return false;
  ++d.statistics.serialised;
  return true;
}

void settled(Descriptor& d) noexcept {
  publish(d, 0);
  d.contention.earned = 0;
  d.contention.stalls = 0;
  d.contention.woken_cpu = 0;
  d.contention.record = nullptr;
}

}  // namespace loam::tm::contention
