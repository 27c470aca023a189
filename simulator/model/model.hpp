// The model of a simulated multicore: what an access costs, which lines move, which transactions it aborts.
//
//   It sees addresses and times, never values: the engine performs the accesses. It runs no code of the program and uses
//   no allocator: memory comes in one reservation of OS pages. Same calls, same answers.
//
//   The engine, for each access of a core:
//     1. if its clock is not the lowest and is_hot() says so, let the cores behind it run first
//     2. access(), or access_unless_hot() for 1 and 2; add `cycles` to the core's clock; if `again`, begin at 1 again
//     3. for each victim: undo what its transaction wrote, and let it go on at its begin
//     4. unless self_abort: log the old value if the core is in a transaction, then perform the access
//
//   Not thread-safe: one thread calls it. Not for long vectors of data in one Access: it walks line by line.
#pragma once

#include "simulator/model/core_set.hpp"
#include "simulator/model/counts.hpp"
#include "simulator/model/machine.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace loam::simulator {

struct Access {
  unsigned core;
  std::uintptr_t address;
  unsigned bytes;
  enum class Kind : std::uint8_t { read, write, atomic } kind;
  std::uint64_t now;  // cycles, the core's clock
  std::uintptr_t pc;
};

struct Outcome {
  std::uint64_t cycles = 0;
  CoreSet victims;          // the cores, without the own one, whose transaction it aborted; last_abort() says why
  bool self_abort = false;  // the own transaction aborted; the access did not happen
  bool again = false;       // the core waits `cycles` first; the access did not happen, and is to be tried again
};

class Moves;
struct State;

class Model {
 public:
  explicit Model(const Machine& machine);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Machine& machine() const noexcept;

  // Whether the access must wait until no other core is behind: the line changed hands lately, the access is a
  // read-modify-write or takes the line from others, or another core owns it.
  bool is_hot(const Access& access) const;

  Outcome access(const Access& access);
  // Both in one: false, and nothing has happened, if is_hot(). Faster than the two calls.
  bool access_unless_hot(const Access& access, Outcome& outcome);
  // This access comes soon: what it needs of the model's own memory is loaded meanwhile. Changes nothing.
  void expect(const Access& access) const;
  // A fence that waits for the core's writes. returns its cost
  std::uint64_t fence(unsigned core, std::uint64_t now);

  // A core's transaction. A victim's, and the own one after self_abort, has ended already: its lines are clean, and
  // nothing is to be called for it. Nesting is the engine's business. Where the machine has committer_wins the engine
  // keeps written values from memory until the commit.
  std::uint64_t begin_transaction(unsigned core, std::uint64_t now);                    // returns its cost
  Outcome commit_transaction(unsigned core, std::uint64_t now);                         // victims: only committer_wins
  std::uint64_t abort_transaction(unsigned core, std::uint64_t now, AbortCause cause);  // returns its cost
  bool in_transaction(unsigned core) const noexcept;
  const Abort& last_abort(unsigned core) const noexcept;

  // Statistics. Misses whose kind is still open count as false sharing after settle(), not before.
  void settle() noexcept;
  const Counts& counts(unsigned core) const noexcept;
  Counts total() const noexcept;
  // The lines that come first in this order, into `reports`; lines with nothing to count there are left out.
  // returns how many
  std::size_t top_lines(LineOrder order, std::span<LineReport> reports) const noexcept;
  // A sample of which lines went where, and when. Lines are addresses without the bits in a line.
  const Moves& moves() const noexcept;
  // Counts begin again; what is in the caches stays.
  void reset_counts() noexcept;
  std::size_t memory_bytes() const noexcept;  // that the model has in use

  // Walks the invariants; for tests. returns the first that does not hold, in `buffer`, or nothing
  std::string_view verify(std::span<char> buffer) noexcept;

 private:
  State& state_;
};

}  // namespace loam::simulator
