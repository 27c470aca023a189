// The counts of the model, for each core and for each line that moved.
#pragma once

#include "simulator/model/core_set.hpp"
#include "simulator/model/machine.hpp"

#include <cstdint>

namespace loam::simulator {

enum class AbortCause : std::uint8_t {
  none,
  conflict,
  read_capacity,
  write_capacity,
  interrupt,
  explicit_abort,
  other
};
inline constexpr unsigned kAbortCauses = 7;

// Of one core. A miss is an access that its first-level cache could not serve; each miss is of one kind and has one server.
struct Counts {
  std::uint64_t reads = 0, writes = 0, atomics = 0, fences = 0;  // accesses; one that crosses lines counts for each
  std::uint64_t misses = 0;
  // Kinds. A line that another core's write took away is missed for true sharing if, until it leaves again, a byte is
  // used that others wrote since; if not, for false sharing (Dubois et al., ISCA 1993).
  std::uint64_t cold = 0, capacity = 0, true_sharing = 0, false_sharing = 0;
  std::uint64_t after_abort = 0;  // the own transaction had written the line and aborted
  std::uint64_t uncached = 0;     // Coherence::none
  // Servers.
  std::uint64_t from_l2 = 0, from_l3 = 0, from_memory[kDistanceMax + 1] = {}, transfers[kLevels] = {};
  std::uint64_t upgrades = 0;       // writes that had the line, but not alone
  std::uint64_t invalidations = 0;  // lines that others' writes took away
  std::uint64_t writebacks = 0;     // changed lines that left the first-level cache for lack of room
  std::uint64_t tlb_misses = 0, walks = 0;
  std::uint64_t stall_cycles = 0;         // beyond what first-level hits would have cost
  std::uint64_t queue_cycles = 0;         // of these: behind other transfers of the line, of memory or of a link
  std::uint64_t store_buffer_cycles = 0;  // of these: waiting for room in the store buffer, or until it is empty
  std::uint64_t begins = 0, commits = 0, aborts[kAbortCauses] = {}, false_conflicts = 0;
  std::uint64_t aborted_cycles = 0;  // in attempts that aborted
};

// How the last transaction of a core ended, if it aborted.
struct Abort {
  AbortCause cause = AbortCause::none;
  bool false_conflict = false;  // the other access is to bytes of the line that the transaction did not use so
  unsigned by = 0;              // the core whose access it was
  std::uintptr_t address = 0;   // of the line
  std::uintptr_t pc = 0;        // of that access
};

// A line that moved.
struct LineReport {
  static constexpr unsigned kSites = 4;
  struct Site {
    std::uintptr_t pc = 0;
    std::uint64_t count = 0;
  };
  std::uintptr_t address = 0;
  std::uint64_t transfers = 0;  // it came from another core's cache, or was taken away from others
  std::uint64_t true_sharing = 0, false_sharing = 0;
  std::uint64_t aborts = 0, false_conflicts = 0;
  std::uint64_t first_now = 0, last_now = 0;
  CoreSet takers;      // the cores that it came to
  Site sites[kSites];  // where the code asked for it, the most frequent first; rare ones may be missing
};

enum class LineOrder : std::uint8_t { transfers, false_sharing, aborts };

}  // namespace loam::simulator
