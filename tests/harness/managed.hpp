// Objects of the managed heap for tests, and heaps small enough to be full soon.
#pragma once

#include "runtime/gc/gc.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace loam::tests {

struct Cell : gc::Object {
  gc::Ref<Cell> next;
  gc::Ref<Cell> other;
  gc::Value<std::uint64_t> number;
  static gc::Descriptor describe() { return gc::describe<Cell>("cell", &Cell::next, &Cell::other); }
};

inline constexpr std::size_t kSmallHeap = std::size_t{256} << 10;

inline gc::Settings small_heap(unsigned collect_every = 0, bool always_full = false) {
  return {.memory_bytes = kSmallHeap,
          .nursery_bytes = std::size_t{32} << 10,
          .buffer_bytes = std::size_t{4} << 10,
          .collect_every = collect_every,
          .always_full = always_full};
}

inline Cell* make_cell(gc::Mutator& mutator, std::uint64_t number) {
  auto* const cell = mutator.allocate<Cell>();
  cell->number.init(number);
  return cell;
}

// first -> first + 1 -> ... of so many cells
inline Cell* make_list(gc::Mutator& mutator, std::uint64_t first, std::uint64_t count) {
  gc::Local<Cell> head(mutator);
  for (std::uint64_t i = count; i-- != 0;) {
    Cell* const cell = make_cell(mutator, first + i);
    cell->next.init(head.get());
    head = cell;
  }
  return head.get();
}

inline std::vector<std::uint64_t> numbers_of(gc::Mutator& mutator, Cell* first) {
  std::vector<std::uint64_t> numbers;
  for (gc::Local<Cell> cell(mutator, first); cell; cell = mutator.read(cell, &Cell::next))
    numbers.push_back(mutator.read(cell, &Cell::number));
  return numbers;
}

inline std::vector<std::uint64_t> counted(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

// Allocates what is dead at once, until so many collections have run.
inline void churn(gc::Mutator& mutator, std::uint64_t collections) {
  const std::uint64_t end = mutator.heap().collections() + collections;
  while (mutator.heap().collections() < end) make_cell(mutator, 7);
}

}  // namespace loam::tests
