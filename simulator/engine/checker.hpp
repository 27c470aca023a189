// The schedule checker: a seed chooses the order of the program's threads, and which of the values that the memory
// orders allow a load returns (orders/memory.hpp). There are no caches and no costs: the clocks of the cores make the
//   random order. random  each access takes a random time, sometimes a long one
//   pct     threads run by priority, which changes at a few random accesses (Burckhardt et al., ASPLOS 2010): finds faults
//           that need few switches of threads, however long the program is
//   exhaustive  every order within a bound, one execution after the other (exploration.hpp)
//   After a race, a deadlock, or an end with a status other than 0, it prints the seed or schedule, the order of
//   threads and the last accesses.
#pragma once

#include "simulator/engine/access.hpp"
#include "simulator/engine/exploration.hpp"
#include "simulator/orders/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace loam::simulator {

class Checker {
 public:
  // explored: where executions are explored, what they have in common; else null
  explicit Checker(Explored* explored);

  // One access, before it happens: the others' turn, if the dice say so.
  void step(std::uintptr_t address, char what, Order order, std::uintptr_t pc);
  void lock(std::uintptr_t address, std::uintptr_t pc);
  void plain(std::uintptr_t address, unsigned bytes, bool writes, std::uintptr_t pc);

  std::uint64_t load(std::uintptr_t address, Order order, std::uint64_t value);
  // A load that sees the newest store: of a compare-exchange that fails.
  void newest(std::uintptr_t address, Order order, std::uint64_t value);
  void store(std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value);
  void modify(std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value);
  Memory& memory() noexcept { return memory_; }
  void fence(Order order, std::uintptr_t pc);
  // From now on every thread sees the present newest store of each address, or a newer one.
  void barrier(std::uintptr_t pc);
  void spawned(unsigned thread, unsigned maker);
  // The thread waits for others, without time: a pause, a core that it gives up, a lock that it did not get.
  // in_vain: it has looked at something, which was not a load.
  void pause(bool in_vain = false);

  // Of the program's end: says what happened where the status is not 0.
  void ended(int status);
  // How to repeat this execution, and what happened last.
  void say_how();

 private:
  struct Step {
    std::uintptr_t address = 0, pc = 0;
    std::uint64_t value = 0;
    unsigned thread = 0;
    char what = ' ';
    bool stale = false;
    Order order = Order::relaxed;
  };
  static constexpr std::size_t kStepsKept = 48, kTurnsKept = 64;
  static constexpr unsigned kChangesMax = 3;

  std::uint64_t below(std::uint64_t bound) noexcept;
  std::uint64_t cost() noexcept;
  void note(std::uint64_t value, bool changed);

  Memory memory_;
  std::optional<Exploration> exploration_;
  std::uint64_t random_, begun_ = 0, steps_ = 0, turns_ = 0;
  std::uint64_t changes_[kChangesMax] = {};
  Step last_[kStepsKept];
  unsigned order_[kTurnsKept] = {};
};

// Null where nothing is checked.
extern Checker* checker;

inline unsigned thread_number() noexcept { return now.thread == nullptr ? 0 : now.thread->number; }

}  // namespace loam::simulator
