#include "runtime/tm/memory.hpp"

#include <new>

namespace loam::tm::memory {

void free_counted(void* block) {
  ++Descriptor::current_or_detached().statistics.blocks_freed;
  std::free(block);
}

void out_of_memory() { throw std::bad_alloc(); }

void undo_to(Descriptor& d, std::uint64_t count) noexcept {
  while (d.allocated_count > count) free_counted(d.allocated.begin()[--d.allocated_count]);
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
  undo_to(d, 0);
  domain.withdraw(d.limbo);
}

}  // namespace loam::tm::memory
