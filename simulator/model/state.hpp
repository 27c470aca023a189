// The state of the model, and its transitions: model.cpp (accesses that hit), misses.cpp (misses and evictions), stores.cpp
// (writes that wait), transactions.cpp, attribution.cpp, verify.cpp.
#pragma once

#include "simulator/model/arena.hpp"
#include "simulator/model/bandwidth.hpp"
#include "simulator/model/directory.hpp"
#include "simulator/model/first_level.hpp"
#include "simulator/model/model.hpp"
#include "simulator/model/moves.hpp"
#include "simulator/model/outer_cache.hpp"
#include "simulator/model/store_buffer.hpp"
#include "simulator/model/translations.hpp"

namespace loam::simulator {

// Where reads do not end a transaction for lack of room: its lines in all.
inline constexpr std::uint32_t kTransactionLinesMax = 1u << 20;

// The running transaction of a core.
struct Transaction {
  bool active = false;
  std::uint64_t begun = 0;
  std::uint64_t interrupt_at = 0;  // 0: never
  std::uint32_t written_lines = 0;
  std::uint32_t count = 0;  // of lines
  std::uint32_t room = 0;
  std::uint64_t* lines = nullptr;  // each line that it used, once
};

// What a hit looks at comes first.
struct alignas(64) Core {
  FirstLevel l1;
  std::uint64_t last_page = kNoLine;
  StoreBuffer stores;
  Transaction tx;
  Tlb tlb;
  Counts counts;
  Tlb tlb2;
  Abort last_abort;

  // Whether this page's translation costs nothing, and leaves the buffer as it is.
  bool knows(std::uint64_t page) noexcept {
    if (page == last_page) return true;
    if (tlb.present() && !tlb.latest(page)) return false;
    last_page = page;
    return true;
  }
};

// One access to one line.
struct Request {
  const Access& access;
  std::uint64_t line;
  std::uint64_t mask;  // its bytes in the line
  std::uint64_t now;
  bool exclusive;  // it needs the line alone: a write that is not kept in a buffer until a commit

  unsigned core() const noexcept { return access.core; }
  bool writes() const noexcept { return access.kind != Access::Kind::read; }
};

struct State {
  explicit State(const Machine& description) noexcept;

  Arena arena;
  Machine machine;
  Core* cores;
  unsigned line_shift, page_shift, cores_per_node;
  std::uint64_t offset_mask, hit_cycles;
  Directory directory;
  OuterCache* l2;                // by group; nullptr: there is none
  OuterCache* l3;                // by node; nullptr: there is none
  Bandwidth* memories;           // by node
  Bandwidth* links;              // by node and node
  std::uint32_t on_chip_cycles;  // to learn that nobody else has a line
  Outcome outcome;               // of the access that runs
  int from_level = -1;           // of the furthest core that gave or lost its line; -1: no other core had it
  Moves moves;

  // Accesses (model.cpp).
  std::uint64_t access_line(const Access& access, std::uint64_t line, int at, std::uint64_t mask,
                            std::uint64_t now) noexcept;
  enum class Tried : std::uint8_t { done, slow, hot };
  template <bool kUnlessHot>
  Tried hit(const Access& access, int at, Outcome& result) noexcept;
  void access_slow(const Access& access, int at, Outcome& result) noexcept;
  Outcome access_lines(const Access& access) noexcept;
  std::uint64_t translate(Core& core, std::uint64_t page) noexcept;
  bool hot_line(const Access& access, std::uint64_t line, int at) const noexcept;

  void expect(const Access& access) const noexcept;

  // Writes that wait (stores.cpp).
  std::uint64_t waits_first(const Access& access, std::uint64_t line, int at) noexcept;
  bool merge(const Request& request, int at, std::uint64_t& cycles) noexcept;
  std::uint64_t buffer(const Request& request, std::uint64_t taken) noexcept;

  // Lines (misses.cpp). Each returns what it takes until the core has the line; it may abort the own transaction.
  std::uint64_t fill(const Request& request) noexcept;
  std::uint64_t upgrade(const Request& request, Copy& copy) noexcept;
  std::uint64_t uncached(const Request& request, Line& entry) noexcept;
  bool must_be_uncached(const Request& request, const Line& entry) const noexcept;
  std::uint64_t fetch(const Request& request, Line& entry) noexcept;
  std::uint64_t from_owner(const Request& request, Line& entry) noexcept;
  std::uint64_t from_outer(const Request& request, Line& entry) noexcept;
  unsigned nearest_outside(unsigned core, const Line& entry) const noexcept;
  bool changed_outside(std::uint64_t line, const Line& entry) const noexcept;
  std::uint64_t from_memory(const Request& request) noexcept;
  std::uint64_t take_from_others(const Request& request, Line& entry) noexcept;
  void moved(const Request& request, History& history, unsigned from) noexcept;
  void invalidate(const Request& request, Line& entry, unsigned victim) noexcept;
  void classify(const Request& request, Line& entry, Copy& copy) noexcept;
  bool evict(unsigned core, int at, std::uint64_t now) noexcept;
  void put_l2(unsigned group, std::uint64_t line, Line& entry, bool changed, unsigned core, std::uint64_t now) noexcept;
  void put_l3(unsigned node, std::uint64_t line, Line& entry, bool changed, unsigned core, std::uint64_t now) noexcept;
  bool drop_above(unsigned first_core, unsigned count, std::uint64_t line, unsigned core, std::uint64_t now) noexcept;
  void write_memory(unsigned node, std::uint64_t line, std::uint64_t now) noexcept;
  void remove(unsigned core, int at, Line& entry) noexcept;
  void tell_written(Line& entry, Copy& copy) noexcept;
  void close(unsigned core, Copy& copy, Line& entry) noexcept;

  // Transactions (transactions.cpp).
  bool note(const Request& request, Copy& copy) noexcept;
  bool interrupted(const Core& core, std::uint64_t now) const noexcept;
  void conflict(const Request& request, unsigned victim, std::uint64_t used) noexcept;
  void conflict_with_readers(const Request& request, Line& entry) noexcept;
  void abort(unsigned core, std::uint64_t now, const Abort& why) noexcept;
  void abort_for_room(unsigned core, std::uint64_t now, std::uint64_t line, bool written) noexcept;
  void forget(unsigned core, bool committed) noexcept;
  void report_abort(unsigned core, unsigned requester) noexcept;

  // Invariants (verify.cpp): the first that does not hold, or nothing.
  std::string_view verify(std::span<char> buffer) noexcept;
  std::string_view verify(unsigned core, int at, std::span<char> buffer) noexcept;

  // As the machine's, from tables.
  std::uint8_t groups_of_cores[kCoresMax] = {}, nodes_of_cores[kCoresMax] = {};
  unsigned group_of(unsigned core) const noexcept { return groups_of_cores[core]; }
  unsigned node_of(unsigned core) const noexcept { return nodes_of_cores[core]; }
  unsigned level(unsigned a, unsigned b) const noexcept {
    return group_of(a) == group_of(b) ? 0 : 1u + machine.distance[node_of(a)][node_of(b)];
  }
  std::uintptr_t address_of(std::uint64_t line) const noexcept { return line << line_shift; }
  bool lazy() const noexcept { return machine.transactions == Transactions::committer_wins; }
  // By node and level: the groups, and the nodes, of cores that are so far from it.
  CoreSet groups_at[kNodesMax][kLevels];
  std::uint16_t nodes_at[kNodesMax][kLevels] = {};
  unsigned first_core_of_group(unsigned group) const noexcept { return group * machine.l2.shared_by; }
};

}  // namespace loam::simulator
