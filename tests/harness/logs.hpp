// Transactions whose logs a test examines: no filter, small chunks, room for a few thousand objects.
#pragma once

#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <cstddef>
#include <string>

namespace loam::tests {

inline gc::Settings roomy_heap() {
  return {.memory_bytes = std::size_t{8} << 20, .nursery_bytes = std::size_t{512} << 10, .buffer_bytes = 4096};
}

struct LogFixture {
  explicit LogFixture(const gc::TxSettings& settings, const gc::Settings& of_heap = roomy_heap())
      : heap(of_heap), all(heap, settings) {}
  gc::Heap heap;
  gc::Transactions all;
  gc::Mutator mutator{heap};
  gc::Transaction tx{all, mutator};
};

inline gc::TxSettings plain_logs(gc::Placement placement = gc::Placement::dedicated, bool short_reads = true) {
  gc::TxSettings settings;
  settings.short_reads = short_reads;
  settings.placement = placement;
  settings.chunk_bytes = 256;
  settings.hash = settings.bitmap = false;
  settings.compaction = gc::Compaction::every;
  return settings;
}

// The parameter: short reads, or 16 bytes for each.
class ReadEntries : public testing::TestWithParam<bool> {
 protected:
  static gc::TxSettings plain_reads() { return plain_logs(gc::Placement::dedicated, GetParam()); }
};
inline std::string read_entries_name(const testing::TestParamInfo<bool>& info) { return info.param ? "short" : "long"; }

}  // namespace loam::tests
