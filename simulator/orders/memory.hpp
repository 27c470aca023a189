// The values that a load may return under C++20, and races of plain accesses: vector clocks, and the last stores of
// each atomic.
//   No side effects: it knows no program and no scheduler. The caller decides which thread runs next, and which of the
//   allowed stores a load returns; so a run depends only on the caller's choices.
//   Stronger than the standard in three points: stores to one address take effect in the order of execution; a
//   read-modify-write, and a compare-exchange that fails, see the newest store; a load never sees a store of the
//   future. So everything that it reports is a fault, but it does not find faults that need one of these three.
//
//   O1 A load sees no store that is older than one of these: a store that happens before the load; a store that its
//      thread has seen; the last seq_cst store, if the load is seq_cst; the newest store at the last membarrier.
//   O2 An acquire load joins the clock that its store published; a read-modify-write publishes what it replaces as well.
//   O3 Two plain accesses of a byte, one of them a write, race unless one happens before the other.
//   O4 At a seq_cst fence each address has an oldest store that the thread may still read. No thread reads an older
//      store after a later seq_cst fence, and no later seq_cst load does. After a seq_cst fence a thread reads no store
//      that is older than the last seq_cst store to that address before the fence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace loam::simulator {

inline constexpr unsigned kOrderedThreadsMax = 16;
// Older stores of an address are forgotten.
inline constexpr std::size_t kStoresKept = 8;

enum class Order : std::uint8_t { relaxed, consume, acquire, release, acq_rel, seq_cst };

inline bool acquires(Order order) noexcept { return order != Order::relaxed && order != Order::release; }
inline bool releases(Order order) noexcept { return order >= Order::release; }

// How far each thread is known to have come.
class Clock {
 public:
  std::uint32_t& operator[](unsigned thread) noexcept { return at_[thread]; }
  std::uint32_t operator[](unsigned thread) const noexcept { return at_[thread]; }
  void join(const Clock& other) noexcept {
    for (unsigned i = 0; i < kOrderedThreadsMax; ++i)
      if (other.at_[i] > at_[i]) at_[i] = other.at_[i];
  }

 private:
  std::array<std::uint32_t, kOrderedThreadsMax> at_{};
};

// Two plain accesses that race; other: who made the earlier one.
struct Race {
  bool found = false, other_wrote = false;
  unsigned other = 0;
};

class Memory {
 public:
  Memory() noexcept;

  // A thread begins, after all that its maker did; another's end happens before what follows.
  void spawned(unsigned thread, unsigned maker) noexcept;
  void joined(unsigned thread, unsigned ended) noexcept { clocks_[thread].join(clocks_[ended]); }

  // A lock that is not made of atomics seen here: everything before its release happens before what follows its acquire.
  void released(unsigned thread, std::uintptr_t lock);
  void acquired(unsigned thread, std::uintptr_t lock);

  // How many stores a load may choose from, the newest first; value: what memory holds now.
  std::size_t choices(unsigned thread, std::uintptr_t address, Order order, std::uint64_t value);
  // The load of that choice; returns its value.
  std::uint64_t load(unsigned thread, std::uintptr_t address, Order order, std::size_t choice);
  void store(unsigned thread, std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value);
  // A read-modify-write of the newest store.
  void modify(unsigned thread, std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value);
  void fence(unsigned thread, Order order) noexcept;
  // Every thread sees what is the newest store of each address now.
  void membarrier() noexcept { barrier_ = made_; }

  Race plain(unsigned thread, std::uintptr_t address, unsigned bytes, bool writes);
  // The memory is given out anew: what was before has nothing to do with it.
  void forget(std::uintptr_t address, std::size_t bytes);

 private:
  struct Store {
    std::uint64_t value = 0, number = 0;  // number: in the order in which all stores were made
    unsigned thread = 0;
    std::uint32_t epoch = 0;  // of its thread; 0: what memory held before the first store that is seen here
    Clock published;
  };
  struct Atomic {
    std::vector<Store> stores;                             // the newest last
    std::array<std::uint64_t, kOrderedThreadsMax> seen{};  // by thread, the number of the store that it saw last
    std::uint64_t last_seq_cst = 0;                        // its number
    std::uint64_t fenced = 0;                              // the oldest store that may be read after a fence (O4)
  };
  // Of a byte. thread: one more, 0 for none.
  struct Touched {
    std::uint8_t writer = 0, reader = 0;
    std::uint32_t written = 0, read = 0;
  };

  Atomic& at(std::uintptr_t address, std::uint64_t value);
  std::size_t oldest(unsigned thread, const Atomic& atomic, Order order) const noexcept;
  void meet_fences(unsigned thread) noexcept;
  void append(unsigned thread, Atomic& atomic, Order order, std::uint64_t value, const Clock& carried);

  // A thread's own component of its clock is 1 or more: a store of epoch 0 is one that no thread made.
  std::array<Clock, kOrderedThreadsMax> clocks_{}, pending_{}, fenced_{};
  std::unordered_map<std::uintptr_t, Atomic> atomics_;
  std::unordered_map<std::uintptr_t, Clock> locks_;
  std::unordered_map<std::uintptr_t, Touched> touched_;
  std::uint64_t made_ = 0, barrier_ = 0;
};

}  // namespace loam::simulator
