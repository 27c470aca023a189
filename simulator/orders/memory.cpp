#include "simulator/orders/memory.hpp"

#include <algorithm>

namespace loam::simulator {

Memory::Memory() noexcept {
  for (unsigned thread = 0; thread < kOrderedThreadsMax; ++thread) clocks_[thread][thread] = 1;
}

void Memory::spawned(unsigned thread, unsigned maker) noexcept {
  // The number may have been another thread's: what that did keeps its epochs.
  const std::uint32_t own = clocks_[thread][thread];
  clocks_[thread] = clocks_[maker];
  clocks_[thread][thread] = own + 1;
  ++clocks_[maker][maker];
  pending_[thread] = fenced_[thread] = {};
}

void Memory::released(unsigned thread, std::uintptr_t lock) {
  locks_[lock].join(clocks_[thread]);
  ++clocks_[thread][thread];
}

void Memory::acquired(unsigned thread, std::uintptr_t lock) { clocks_[thread].join(locks_[lock]); }

// The history of an address; one that is new, or that something else than an atomic seen here has changed, begins with its
// value.
Memory::Atomic& Memory::at(std::uintptr_t address, std::uint64_t value) {
  Atomic& atomic = atomics_[address];
  if (atomic.stores.empty() || atomic.stores.back().value != value) {
    Store first;
    // Code that is not seen, as libstdc++'s of a static variable, orders what it does itself.
    if (!atomic.stores.empty())
      for (const Clock& clock : clocks_) first.published.join(clock);
    atomic = {};
    first.value = value;
    first.number = ++made_;
    atomic.stores.push_back(first);
  }
  return atomic;
}

// O1: the index of the oldest store that a load may see.
std::size_t Memory::oldest(unsigned thread, const Atomic& atomic, Order order) const noexcept {
  for (std::size_t at = atomic.stores.size() - 1; at > 0; --at) {
    const Store& store = atomic.stores[at];
    const bool happened = store.epoch != 0 && store.epoch <= clocks_[thread][store.thread];
    const bool seen = store.number <= atomic.seen[thread];
    const bool last = order == Order::seq_cst && store.number <= std::max(atomic.last_seq_cst, atomic.fenced);  // O4
    if (happened || seen || last || store.number <= barrier_) return at;
  }
  return 0;
}

std::size_t Memory::choices(unsigned thread, std::uintptr_t address, Order order, std::uint64_t value) {
  const Atomic& atomic = at(address, value);
  return atomic.stores.size() - oldest(thread, atomic, order);
}

std::uint64_t Memory::load(unsigned thread, std::uintptr_t address, Order order, std::size_t choice) {
  Atomic& atomic = atomics_[address];
  const Store& store = atomic.stores[atomic.stores.size() - 1 - choice];
  atomic.seen[thread] = store.number;
  (acquires(order) ? clocks_ : pending_)[thread].join(store.published);  // O2
  return store.value;
}

void Memory::append(unsigned thread, Atomic& atomic, Order order, std::uint64_t value, const Clock& carried) {
  Store made;
  made.value = value;
  made.number = ++made_;
  made.thread = thread;
  made.epoch = clocks_[thread][thread];
  made.published = carried;
  made.published.join(releases(order) ? clocks_[thread] : fenced_[thread]);
  // What follows is not part of what was published.
  ++clocks_[thread][thread];
  if (order == Order::seq_cst) atomic.last_seq_cst = made.number;
  atomic.seen[thread] = made.number;
  if (atomic.stores.size() == kStoresKept) atomic.stores.erase(atomic.stores.begin());
  atomic.stores.push_back(made);
}

void Memory::store(unsigned thread, std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value) {
  append(thread, at(address, before), order, value, {});
}

void Memory::modify(unsigned thread, std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value) {
  Atomic& atomic = at(address, before);
  const Clock published = atomic.stores.back().published;
  (acquires(order) ? clocks_ : pending_)[thread].join(published);
  append(thread, atomic, order, value, published);  // O2: a release sequence goes on
}

// O4, of the thread's fence.
void Memory::meet_fences(unsigned thread) noexcept {
  for (auto& [address, atomic] : atomics_) {
    const Store& newest_known = atomic.stores[oldest(thread, atomic, Order::relaxed)];
    atomic.fenced = std::max(atomic.fenced, newest_known.number);
    atomic.seen[thread] = std::max({atomic.seen[thread], atomic.fenced, atomic.last_seq_cst});
  }
}

void Memory::fence(unsigned thread, Order order) noexcept {
  if (acquires(order)) clocks_[thread].join(pending_[thread]);
  if (order == Order::seq_cst) meet_fences(thread);
  if (releases(order)) {
    fenced_[thread] = clocks_[thread];
    ++clocks_[thread][thread];
  }
}

Race Memory::plain(unsigned thread, std::uintptr_t address, unsigned bytes, bool writes) {
  Race race;
  const Clock& clock = clocks_[thread];
  for (std::uintptr_t byte = address; byte < address + bytes; ++byte) {
    Touched& touched = touched_[byte];
    const auto unordered = [&](std::uint8_t who, std::uint32_t epoch) {
      return who != 0 && who != thread + 1 && epoch > clock[who - 1u];
    };
    if (unordered(touched.writer, touched.written)) race = {true, true, touched.writer - 1u};
    if (writes && unordered(touched.reader, touched.read)) race = {true, false, touched.reader - 1u};
    (writes ? touched.writer : touched.reader) = static_cast<std::uint8_t>(thread + 1);
    (writes ? touched.written : touched.read) = clock[thread];
  }
  return race;
}

void Memory::forget(std::uintptr_t address, std::size_t bytes) {
  constexpr std::size_t kOneByOne = 4096;
  if (bytes > kOneByOne) {
    const auto inside = [&](const auto& entry) { return entry.first - address < bytes; };
    std::erase_if(touched_, inside);
    std::erase_if(atomics_, inside);
    return;
  }
  for (std::uintptr_t byte = address; byte < address + bytes; ++byte) {
    touched_.erase(byte);
    atomics_.erase(byte);
  }
}

}  // namespace loam::simulator
