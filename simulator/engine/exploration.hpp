// Bounded exhaustive exploration (LOAM_SIM_CHECK=exhaustive): makes the choices of one execution, as the search of
// orders/search.hpp prescribes: which thread runs next, and which store a load returns. explore.hpp runs the
// executions.
//   Source  Musuvathi, Qadeer: "Iterative context bounding for systematic testing of multithreaded programs", PLDI 2007;
//           waiting threads: the same authors, "Fair stateless model checking", PLDI 2008. Counting older values like
//           interruptions is our addition.
//   How     A thread runs until it ends, sleeps or waits; then another one runs, which costs nothing. A departure is
//           one of three: a thread is interrupted before an atomic access, a load returns an older value, or a waiting
//           thread runs although another could run.
//   Two kinds of interruptions are skipped without loss: before a plain access (two unordered plain accesses are a
//           race, which is found in any order), and before an atomic that no second thread uses in any execution.
//
//   X1 shared holds each address that two threads used in one execution so far. It only grows; if it grew, the
//      search begins anew.
//   X2 a thread waits if it has paused, or has read the same value with the same instruction twice, and has changed
//      nothing itself since. It stops waiting when another thread changes an atomic, or when all threads wait.
#pragma once

#include "simulator/engine/thread.hpp"
#include "simulator/orders/memory.hpp"
#include "simulator/orders/search.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace loam::simulator {

// Addresses, by open addressing: pages that are shared between processes hold no containers.
class AddressSet {
 public:
  static constexpr std::size_t kMax = 1 << 14;

  bool contains(std::uintptr_t address) const noexcept { return slots_[slot(address)] == address; }
  // returns whether it is new; ends the program when there is no room
  bool add(std::uintptr_t address) noexcept;

 private:
  std::size_t slot(std::uintptr_t address) const noexcept {
    std::size_t at = (address >> 2) * 0x9E37'79B9'7F4A'7C15 >> 40 & (kMax - 1);
    while (slots_[at] != 0 && slots_[at] != address) at = (at + 1) & (kMax - 1);
    return at;
  }
  std::size_t count_ = 0;
  std::uintptr_t slots_[kMax];
};

// What all executions of a search have in common; all zero bytes at first.
struct Explored {
  Search search;
  AddressSet shared;  // X1
  bool grew;
};

class Exploration {
 public:
  explicit Exploration(Explored& common) noexcept : common_(common) {}

  // A thread of this number has begun.
  void began(unsigned thread) noexcept { waiting_[thread] = {}; }
  // Before an access to an atomic or a lock: perhaps others first.
  void before(std::uintptr_t address);
  // Which of the stores that a load may see; 0 is the newest.
  std::size_t store_to_see(std::size_t stores) noexcept;
  // After an atomic access. changed: another thread could notice it
  void after(std::uintptr_t pc, std::uintptr_t address, std::uint64_t value, bool changed) noexcept;
  // The thread pauses, or gives up its core: it waits for others, if it has looked at anything since it last did.
  // in_vain: it did so just now, not by a load
  void pause(bool in_vain);
  // The scheduler asks who runs next. Null: nobody can.
  Thread* decide();

  const Search& search() const noexcept { return common_.search; }

 private:
  struct Look {
    std::uintptr_t pc, address;
    std::uint64_t value;
  };
  static constexpr std::size_t kLooksMax = 16;
  // Of a thread, by its number.
  struct Waiting {
    bool waits = false, looked = false;
    std::size_t looks = 0;  // since its last change, as many as there is room for
    Look last[kLooksMax];
  };
  struct Ways {
    Thread* at[kOrderedThreadsMax + 1];
    unsigned free = 0, all = 0;
    void add(Thread* thread) noexcept { at[all++] = thread; }
  };

  Ways others(bool waiting) noexcept;
  Thread* choose(const Ways& ways);
  Thread* first_to_time_out() const noexcept;
  Ways when_it_waits();
  bool is_shared(std::uintptr_t address);
  void give_way_to(Thread* thread);

  Explored& common_;
  Waiting waiting_[kOrderedThreadsMax];
  std::unordered_map<std::uintptr_t, unsigned>
      users_;  // one more than the number of the thread that used an address first
  Thread* wanted_ = nullptr;
};

}  // namespace loam::simulator
