#include "runtime/tm/contention.hpp"

#include "runtime/platform/machine.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>

namespace loam::tm::contention {
namespace {

// Aborts in a row after which the core is given up now and then: the other side may not be running.
constexpr unsigned kEagerRetries = 8;
// How long to wait for an owner before aborting after all, and for a record to become free before trying again.
constexpr std::uint64_t kWaitNsMax = 50'000;
// The random wait of `backoff` is below 2^kBackoffLeast pauses at first and never above 2^kBackoffMost.
constexpr unsigned kBackoffLeast = 4, kBackoffMost = 12;

constinit std::atomic<std::uint64_t> tickets{0};

// Returns whether `record` is no longer `seen`, after waiting for that for a while.
bool wait_while(const Orec& record, std::uint64_t seen) noexcept {
  const std::uint64_t deadline = platform::monotonic_ns() + kWaitNsMax;
  sync::Backoff backoff;
  do {
    // relaxed: whoever goes on reads the record again, with acquire
    if (record.load(std::memory_order_relaxed) != seen) return true;
    backoff.wait();
  } while (platform::monotonic_ns() < deadline);
  return false;
}

std::uint64_t priority_of(unsigned slot) noexcept {
  const Descriptor* const other = Descriptor::of_slot(slot);
  return other == nullptr ? 0 : other->contention.priority.load(std::memory_order_relaxed);  // relaxed: a hint
}

// Of two with the same priority the lower slot has the higher one.
bool goes_before(const Descriptor& d, unsigned owner) noexcept {
  const std::uint64_t mine = d.contention.priority.load(std::memory_order_relaxed), theirs = priority_of(owner);
  return mine > theirs || (mine == theirs && mine != 0 && d.slot < owner);
}

std::uint64_t work_of(const Descriptor& d) noexcept {
  return static_cast<std::uint64_t>(d.read_cursor - d.reads.begin()) +
         static_cast<std::uint64_t>(d.write_end - d.writes.begin());
}

}  // namespace

bool wait_for_owner(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept {
  switch (shared.config.manager) {
    case Manager::suicide:
    case Manager::delay:
    case Manager::backoff:
      return false;
    case Manager::karma:
    case Manager::timestamp:
      return goes_before(d, owner_of(seen)) && wait_while(record, seen);
  }
  return false;
}

void lost(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept {
  Contention& own = d.contention;
  own.record = &record;
  own.seen = seen;
  const std::uint64_t priority = own.priority.load(std::memory_order_relaxed);
  // relaxed: others take it for a hint
  if (shared.config.manager == Manager::karma)
    own.priority.store(priority + 1 + work_of(d), std::memory_order_relaxed);
  else if (shared.config.manager == Manager::timestamp && priority == 0)
    own.priority.store(~tickets.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
}

void before_retry(Descriptor& d, unsigned aborts) noexcept {
  switch (shared.config.manager) {
    case Manager::suicide:
      break;
    case Manager::delay:
      if (d.contention.record != nullptr && is_locked(d.contention.seen))
        wait_while(*d.contention.record, d.contention.seen);
      break;
    case Manager::backoff: {
      const unsigned rounds = 1u << std::min(kBackoffLeast + aborts, kBackoffMost);
      for (unsigned i = d.contention.random.below(rounds); i > 0; --i) platform::pause();
      break;
    }
    case Manager::karma:
    case Manager::timestamp:
      break;
  }
  d.contention.record = nullptr;
  if (aborts % kEagerRetries == 0) platform::yield();
}

void settled(Descriptor& d) noexcept { d.contention.priority.store(0, std::memory_order_relaxed); }  // a hint

}  // namespace loam::tm::contention
