// The description of a simulated machine. The lab renders machines/NAME.toml as lines `key=value`; parse_machine()
// reads them.
//
//   group      the cores that share a second-level cache (l2.shared_by)
//   node       the cores that share a memory controller, and a place to measure distances from
//   level      how far two cores are from each other: 0 same group, 1 same node, 1 + d for nodes at distance d
//
// All times are cycles of a core.
#pragma once

#include "simulator/model/core_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::simulator {

inline constexpr unsigned kNodesMax = 16;
inline constexpr unsigned kDistanceMax = 4;
inline constexpr unsigned kLevels = kDistanceMax + 2;
inline constexpr unsigned kMilli = 1000;  // keys with a decimal point are kept in thousandths

enum class Coherence : std::uint8_t {
  none,  // what two cores use and one writes is not cached: what software does where hardware keeps nothing coherent
  mesi,
};
enum class Transactions : std::uint8_t {
  none,
  requester_wins,  // a core that asks for a line aborts the transaction that holds it
  committer_wins,  // writes are buffered; who commits aborts whose transaction read or wrote a line of it
};
enum class ReadCapacity : std::uint8_t { l1, l2, unlimited };
enum class Costs : std::uint8_t { access, blocks };

struct CacheShape {
  std::uint64_t bytes = 0;  // 0: there is none
  std::uint32_t ways = 1;
  std::uint32_t shared_by = 1;
  std::uint32_t cycles = 0;     // from the request to the value, of an access that it serves
  std::uint32_t inclusive = 0;  // 1: a line that leaves it leaves the caches above it as well
};

struct TlbShape {
  std::uint32_t entries = 0;  // 0: no cost of translation
  std::uint32_t ways = 1;
};

struct Machine {
  char name[64] = {};
  std::uint32_t cores = 1, nodes = 1;
  std::uint32_t line_bytes = 64, page_bytes = 4096;
  Coherence coherence = Coherence::mesi;

  CacheShape l1, l2, l3;  // l1.shared_by is 1

  std::uint32_t transfer_cycles[kLevels] = {};    // a line comes from a cache at this level
  std::uint32_t invalidate_cycles[kLevels] = {};  // the furthest other copy goes
  // How long a core keeps a line from a cache at this level before the next core that waits for it takes it.
  std::uint32_t stay_cycles[kLevels] = {8, 8, 8, 8, 8, 8};
  std::uint32_t memory_cycles[kDistanceMax + 1] = {};  // by the distance of the page's node
  std::uint32_t memory_uniform = 0;                    // 1: one memory for all nodes, everywhere at distance 0
  std::uint32_t memory_bytes_per_cycle_milli = 0;      // of one node's memory; 0: unlimited
  std::uint32_t link_bytes_per_cycle_milli = 0;        // of each direction between two nodes; 0: unlimited
  std::uint8_t distance[kNodesMax][kNodesMax] = {};

  TlbShape tlb, tlb2;
  std::uint32_t tlb2_cycles = 0;  // a page found in the second
  std::uint32_t walk_cycles = 0;  // a page found in neither

  std::uint32_t atomic_cycles = 0;  // of a read-modify-write, beside its access as a write
  std::uint32_t fence_cycles = 0;
  std::uint32_t store_buffer = 0;  // writes that may wait for their line while the core goes on; 0: each write waits
  std::uint32_t serialised = 1;  // 1: transfers of one line happen one after the other; 0 only to see what that decides

  Transactions transactions = Transactions::none;
  ReadCapacity read_capacity = ReadCapacity::l1;
  std::uint32_t written_lines = 0;  // at most so many in a transaction; 0: what the first-level cache holds
  std::uint32_t begin_cycles = 0, commit_cycles = 0, abort_cycles = 0;

  // Each core is interrupted whenever so many cycles have passed (0: never), and is busy with it for so long (the engine).
  std::uint64_t interrupt_every_cycles = 0;
  std::uint32_t interrupt_cycles = 0;
  // So much earlier for the first core. No key: the engine draws it from the seed, so that not each run of a program is
  // interrupted at the same places.
  std::uint64_t interrupt_phase = 0;

  // For the engine: the model itself does not use them.
  std::uint64_t hot_cycles = 20000;  // how long a line that changed hands is hot (is_hot() uses it)
  std::uint32_t quantum_cycles = 200;
  std::uint32_t megahertz = 1000;
  Costs costs = Costs::access;  // what takes time beside the caches: each access, or the instructions between them
  std::uint32_t instruction_cycles_milli = 1000;    // an instruction between accesses, where they are counted
  std::uint32_t access_cycles = 0;                  // each access, where they are not
  std::uint32_t block_cycles = 0, wake_cycles = 0;  // a thread goes to sleep; another one is woken

  unsigned cores_per_node() const noexcept { return cores / nodes; }
  unsigned node_of(unsigned core) const noexcept { return core / cores_per_node(); }
  unsigned group_of(unsigned core) const noexcept { return core / l2.shared_by; }
  unsigned groups() const noexcept { return cores / l2.shared_by; }
  bool interrupts_take_time() const noexcept { return interrupt_every_cycles != 0 && interrupt_cycles != 0; }
  // When the core is interrupted next; not all cores at once. Only where they are interrupted at all.
  std::uint64_t next_interrupt(unsigned core, std::uint64_t now) const noexcept {
    const std::uint64_t phase = interrupt_phase + interrupt_every_cycles / cores * core;
    return ((now + phase) / interrupt_every_cycles + 1) * interrupt_every_cycles - phase;
  }
  // The level between two cores, or a core and itself (0).
  unsigned level(unsigned a, unsigned b) const noexcept {
    if (group_of(a) == group_of(b)) return 0;
    return 1u + distance[node_of(a)][node_of(b)];
  }
};

// Reads lines (or parts between semicolons) `key=value`; `#` begins a comment.
// returns what is wrong, written into `buffer`: the key, its value and what is allowed; empty if nothing is
std::string_view parse_machine(std::string_view text, Machine& machine, std::span<char> buffer) noexcept;

}  // namespace loam::simulator
