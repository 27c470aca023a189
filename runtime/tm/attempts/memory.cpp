#include "runtime/tm/attempts/memory.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/provision.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"

#include <bit>
#include <new>

namespace loam::tm::memory {

void free_counted(void* block) {
  ++Descriptor::current_or_detached().statistics.blocks_freed;
  std::free(block);
}

void free_retired(void* block) {
  ++Descriptor::current_or_detached().statistics.blocks_freed;
  give_back.load(std::memory_order_relaxed)(block);  // relaxed: see there
}

void begin_loan(Descriptor& d) noexcept {
  if (loam_malloc_lend != nullptr && loam_malloc_lend(&d.stocks) != 0)
    give_back.store(loam_malloc_give, std::memory_order_relaxed);  // relaxed: as above
}

void end_loan(Descriptor& d) noexcept {
  if (d.stocks->units != 0) loam_malloc_lend(nullptr);
}

namespace {

// An attempt that runs in place cannot be undone, so its pool is refilled at once. The same holds for an attempt under
// a lock, because no other thread could continue meanwhile.
bool can_be_taken_back(const Descriptor& d) noexcept {
  if (d.mode != Mode::update && d.mode != Mode::nested) return false;
  // relaxed: set once, before this attempt
  return shared.algorithm.load(std::memory_order_relaxed)->description->overlaps;
}

int in_attempt() { return can_be_taken_back(Descriptor::current_or_detached()) ? 1 : 0; }

}  // namespace

void watch_attempts() noexcept {
  if (loam_provision_watch != nullptr) loam_provision_watch(in_attempt);
}

void out_of_memory(Descriptor& d) {
  if (loam_provision_wanted != nullptr && can_be_taken_back(d) && loam_provision_wanted() != 0) {
    // relaxed: set once, before this attempt
    shared.algorithm.load(std::memory_order_relaxed)->rollback(d, AbortCause::reprovision);
    lifecycle::restart(d, kProvide);
  }
  throw std::bad_alloc();
}

void provide(Descriptor&) noexcept { loam_provision(loam_provision_wanted()); }

namespace {

// The stocks that are lent to the thread, even while a part runs.
platform::Stocks& lent_stocks(const Descriptor& d) noexcept {
  platform::Stocks* stocks = d.stocks;
  for (const Part* part = d.part; part != nullptr; part = part->around) stocks = part->mark.stocks;
  return *stocks;
}

std::uintptr_t number_above(const void* entry) noexcept {
  return reinterpret_cast<std::uintptr_t>(entry) >> kAddressBits;
}
void* block_of(void* entry) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(entry) & ((std::uintptr_t{1} << kAddressBits) - 1));
}
void* noted(void* block, unsigned number) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block) | std::uintptr_t{number + 1} << kAddressBits);
}

// Returns the newest block that the attempt has taken from a stock.
void put_newest_back(Descriptor& d, void* entry) noexcept {
  platform::Stock& stock = lent_stocks(d).all[number_above(entry) - 1];
  LOAM_ASSERT(stock.next[-1] == block_of(entry), "T5: a part returns a block that is not the newest one of its stock");
  --stock.next;
  ++d.statistics.blocks_freed;
}

// Resets each stock from which the attempt has taken blocks to its position at the start of the attempt.
void put_back(Descriptor& d) noexcept {
  platform::Stocks* const stocks = &lent_stocks(d);
  for (; d.stocks_taken != 0; d.stocks_taken &= d.stocks_taken - 1) {
    platform::Stock& stock = stocks->all[static_cast<std::size_t>(std::countr_zero(d.stocks_taken))];
    if (stock.attempt != d.statistics.commits) continue;  // its bit is of an attempt that has committed
    d.statistics.blocks_freed += static_cast<std::uint64_t>(stock.next - stock.kept);
    stock.next = stock.kept;
    stock.attempt = platform::kNoAttempt;
  }
}

}  // namespace

void* restock_and_take(Descriptor& d, unsigned number) {
  platform::Stock& stock = lent_stocks(d).all[number];
  begin_taking(d, stock, number);
  if (*stock.next == nullptr && loam_malloc_restock(&stock) == 0) return nullptr;
  void* const block = *stock.next++;
  static_cast<Word*>(block)[1] = 0;  // platform/stock.hpp: K3
  if (d.part != nullptr) note(d, noted(block, number));
  return block;
}

void free_entry(void* entry, bool committed) {
  if (!is_of_stock(entry)) return free_counted(entry);
  if (committed) free_retired(block_of(entry));
}

void* allocate_beside(Descriptor& d, std::size_t bytes) { return allocate_logged(d, bytes); }

void undo_to(Descriptor& d, std::uint64_t count) noexcept {
  while (d.allocated_count > count) {
    void* const entry = d.allocated.begin()[--d.allocated_count];
    if (is_of_stock(entry))
      put_newest_back(d, entry);
    else
      free_counted(entry);
  }
}

namespace {

void add(HeldBack& sum, const Descriptor& d) noexcept {
  // relaxed: counts, which order nothing
  sum.blocks += d.held_blocks.load(std::memory_order_relaxed);
  sum.bytes += d.held_bytes.load(std::memory_order_relaxed);
}

}  // namespace

HeldBack held_back() noexcept {
  HeldBack own;
  add(own, Descriptor::current_or_detached());
  return own;
}

HeldBack held_back_of_all() noexcept {
  HeldBack sum{domain.orphan_blocks(), domain.orphan_bytes()};
  domain.for_each_slot([&](unsigned slot) {
    if (const Descriptor* const d = Descriptor::of_slot(slot)) add(sum, *d);
  });
  return sum;
}

void undo(Descriptor& d) noexcept {
  put_back(d);
  while (d.allocated_count > 0) free_entry(d.allocated.begin()[--d.allocated_count], false);
  domain.withdraw(d.limbo);
}

}  // namespace loam::tm::memory
