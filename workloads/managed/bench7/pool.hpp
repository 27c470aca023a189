// Pools of identifiers: taken from the head of a ring, given back at its tail.
#pragma once

#include "workloads/managed/bench7/objects.hpp"

#include <cstdint>

namespace loam::workloads::managed::bench7 {

// With the identifiers 1 to `count`.
template <class Access>
Pool* make_pool(Access& tx, std::uint32_t count) {
  gc::Local<gc::ValueArray<Number>> ring(tx.mutator(), tx.template create_array<gc::ValueArray<Number>>(count));
  for (std::size_t i = 0; i < count; ++i) ring->at<gc::Value<Number>>(i).init(static_cast<Number>(i + 1));
  auto* const pool = tx.template create<Pool>();
  pool->ring.init(ring.get());
  pool->head.init(0);
  pool->count.init(count);
  return pool;
}

template <class Access>
std::uint64_t available(Access& tx, const gc::Local<Pool>& pool) {
  return tx.read(pool, &Pool::count);
}

// There must be one.
template <class Access>
Number take(Access& tx, const gc::Local<Pool>& pool) {
  const gc::Local<gc::ValueArray<Number>> ring(tx.mutator(), tx.read(pool, &Pool::ring));
  const std::uint64_t head = tx.read(pool, &Pool::head), count = tx.read(pool, &Pool::count);
  const Number id = tx.read_at(ring, head);
  tx.write(pool, &Pool::head, (head + 1) % ring->length());
  tx.write(pool, &Pool::count, count - 1);
  return id;
}

template <class Access>
void give(Access& tx, const gc::Local<Pool>& pool, Number id) {
  const gc::Local<gc::ValueArray<Number>> ring(tx.mutator(), tx.read(pool, &Pool::ring));
  const std::uint64_t head = tx.read(pool, &Pool::head), count = tx.read(pool, &Pool::count);
  tx.write_at(ring, (head + count) % ring->length(), id);
  tx.write(pool, &Pool::count, count + 1);
}

}  // namespace loam::workloads::managed::bench7
