// The counts of the model by name: for statistics, and as hardware counters of a simulated core that the program can
// read.
#pragma once

#include "simulator/model/counts.hpp"

#include <cstdint>
#include <string_view>

namespace loam::simulator {

struct Counter {
  std::string_view name;
  std::uint64_t (*value)(const Counts& counts);
};

#define LOAM_COUNTER(name)                                         \
  Counter {                                                        \
    #name, [](const Counts& c) -> std::uint64_t { return c.name; } \
  }

inline constexpr Counter kCounters[] = {
    {"accesses", [](const Counts& c) -> std::uint64_t { return c.reads + c.writes + c.atomics; }},
    LOAM_COUNTER(reads),
    LOAM_COUNTER(writes),
    LOAM_COUNTER(atomics),
    LOAM_COUNTER(misses),
    LOAM_COUNTER(cold),
    LOAM_COUNTER(capacity),
    LOAM_COUNTER(true_sharing),
    LOAM_COUNTER(false_sharing),
    LOAM_COUNTER(uncached),
    LOAM_COUNTER(from_l2),
    LOAM_COUNTER(from_l3),
    {"from_memory",
     [](const Counts& c) {
       std::uint64_t sum = 0;
       for (const auto one : c.from_memory) sum += one;
       return sum;
     }},
    {"transfers",
     [](const Counts& c) {
       std::uint64_t sum = 0;
       for (const auto one : c.transfers) sum += one;
       return sum;
     }},
    LOAM_COUNTER(upgrades),
    LOAM_COUNTER(invalidations),
    LOAM_COUNTER(writebacks),
    LOAM_COUNTER(tlb_misses),
    LOAM_COUNTER(stall_cycles),
    LOAM_COUNTER(queue_cycles),
    LOAM_COUNTER(begins),
    LOAM_COUNTER(commits),
    LOAM_COUNTER(aborted_cycles),
};

#undef LOAM_COUNTER

}  // namespace loam::simulator
