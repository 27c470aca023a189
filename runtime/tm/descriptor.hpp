// Descriptor: what a thread's transactions are made of. One per thread slot, in OS pages, reused after thread exit and
// never unmapped: other threads look into it when they meet a record that it has locked.
#pragma once

#include "runtime/base/random.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/reclaim/epoch.hpp"
#include "runtime/tm/logs/log.hpp"
#include "runtime/tm/records/mapping.hpp"
#include "runtime/tm/types.hpp"

#include <atomic>
#include <cstddef>
#include <new>
#include <type_traits>

namespace loam::tm {

// A word to be written at commit. Entries of one stripe form a chain from the first (whose address is in the record).
struct WriteEntry {
  std::atomic<Word*> address;     // atomic: a thread that meets the lock reads it, to name the cause of its abort
  Word value;                     // of the whole word
  Word mask;                      // which bits of it are written
  Orec* record;                   // the stripe's in its first entry, a word that nobody looks at in the others
  std::uint64_t old_version;      // of the record before it was locked
  std::atomic<WriteEntry*> next;  // the stripe's next entry; atomic as `address`
};

// The owner's first entry of the stripe whose record was seen as `locked`.
inline WriteEntry* first_entry(std::uint64_t locked) noexcept {
  return reinterpret_cast<WriteEntry*>(entry_of(locked));
}

// Where the transactional part of a thread stands.
// nested: in an update, within a part that can be taken back; serial: alone, cannot abort; detached: the descriptor of
// a thread without one. In this order one comparison tells whether an attempt of an algorithm runs, or one that writes:
// accesses of C that are inlined make no other (include/loam/tm_norec.h).
enum class Mode : std::uint8_t { update, nested, read_only, serial, idle, detached };

struct AlgorithmDescription;
struct Descriptor;
struct Part;

// What attaching a thread needs to know of an algorithm.
struct Hooks {
  const AlgorithmDescription* description;
  void (*attach)(Descriptor&);
  void (*rollback)(Descriptor&, AbortCause);
  bool uses_records, knows_hash, privatizes_safely;
};

// A function to call once a transaction's outcome is known. of: the outcome; restore: whenever something is taken back, at
// once
struct Handler {
  enum class Of : std::uint8_t { commit, abort, restore };
  static constexpr std::size_t kArgumentBytes = 48;

  void (*call)(void* argument);
  Of of;
  alignas(std::max_align_t) std::byte argument[kArgumentBytes];
};

// What the contention manager keeps of a transaction that has aborted (contention.hpp).
struct Contention {
  const Orec* record = nullptr;  // that it met last
  std::uint64_t seen = 0;        // and as what
  std::uint64_t earned = 0;      // karma: the work that it has lost
  unsigned stalls = 0;           // aborts of this transaction behind which the owner was seen standing still
  std::uint64_t woken_cpu = 0;   // the thread's CPU time when retry() last woke this transaction; 0: not yet
  std::atomic<std::uint64_t> priority{0};
  base::Random random{0};  // a stream of the slot's own
};

// A checkpoint first: the body of an attempt is handed its address and finds the descriptor.
struct alignas(platform::kApartBytes) Descriptor : platform::Checkpoint {
  explicit constexpr Descriptor(Mode initial) noexcept : Checkpoint{}, mode(initial) {}

  // -- read at every access -------------------------------------------------------------------------------------------
  std::uint64_t snapshot = 0;  // values read are valid together at this clock value
  Orec** read_cursor = nullptr;
  Orec** read_limit = nullptr;
  WriteEntry* write_end = nullptr;    // of the write set
  WriteEntry* write_limit = nullptr;  // of its log
  std::uint64_t locked_word = 0;      // what this thread puts into a record, less the entry
  std::uint64_t allocated_count = 0;
  const platform::Stocks* stocks = &platform::no_stocks;  // what its attempts allocate from (memory.hpp)
  Mode mode;
  // The attempt has released memory or written a part of a word: its commit has more to do than to write words and
  // release their records.
  bool special = false;
  bool quiesces = false;  // its commit returns once no attempt runs that ran beside it (lifecycle::privatize)
  unsigned slot = 0;
  Orec no_record{0};  // of write entries behind the first of their stripe

  reclaim::Participant participant;  // on lines of its own: others look at it

 private:
  friend struct InlinedLayout;  // c/inlined.cpp
  static constexpr std::size_t kStateBytes = 1024;
  // At a place that nothing behind it moves: inlined accesses of C know it.
  alignas(platform::kApartBytes) std::byte state_[kStateBytes]{};

 public:
  // -- once per attempt -----------------------------------------------------------------------------------------------
  // Written by the owner alone, with plain increments; read by whoever sums up, after the owner has stopped.
  Statistics statistics;

  // -- logs -----------------------------------------------------------------------------------------------------------
  Log<Orec*> reads;  // entries are records' addresses: 8 bytes each
  Log<WriteEntry> writes;
  Log<void*> allocated;             // the attempt's new blocks that came from no stock
  Log<const Word*> read_addresses;  // blame only: the word behind each entry of `reads`

  std::uint64_t stocks_taken = 0;  // a bit for each size that an attempt since the last abort has taken from a stock

  Contention contention;
  Part* part = nullptr;                   // the innermost part that can be taken back
  std::uint64_t generation = 0;           // of serial transactions, when the attempt asked to wait
  const WriteEntry* woken_end = nullptr;  // waiting.hpp

  Log<Handler> handlers;                           // in the order in which they were given
  std::size_t handler_first = 0, handler_end = 0;  // those of the attempt; before them, of one whose handlers run now

  reclaim::Limbo limbo;

  // What commits of others that may have to wait for this thread look at (lifecycle.hpp). Only under
  // Privatization::commit, and algorithms that need it.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> published{0};
  // What the thread's limbo holds back, as of its last commit that freed something. Read by whoever sums up.
  std::atomic<std::uint64_t> held_blocks{0}, held_bytes{0};

  // What the algorithm of the process adds; made by its attach().
  template <class State>
  State& state() noexcept {
    static_assert(sizeof(State) <= kStateBytes && alignof(State) <= platform::kApartBytes);
    return *std::launder(reinterpret_cast<State*>(state_));
  }
  // Makes the State, once per descriptor.
  template <class State>
  State& make_state() noexcept {
    static_assert(std::is_trivially_destructible_v<State>);
    return *::new (state_) State;
  }

  // The calling thread's descriptor, or one whose mode is detached: it is made at the thread's first transaction and
  // given back at its exit.
  static Descriptor& current_or_detached() noexcept { return *current_; }
  // As above, and made now if the process has had a transaction at all.
  static Descriptor& current() noexcept;
  static Descriptor& attach_thread(const Hooks& algorithm) noexcept;
  // The descriptor of a slot, or nullptr if no thread ever had it.
  static Descriptor* of_slot(unsigned slot) noexcept;
  // Runs work(d), d the calling thread's descriptor, which stays as it is: transactions of `work` use another one.
  static void set_aside(void (*work)(Descriptor&) noexcept) noexcept;
  // In the child of a fork: descriptors of threads that are not there are forgotten, their slots are free.
  static void forget_other_threads() noexcept;

 private:
  friend void thread_exit() noexcept;

  static constinit Descriptor nobody_;  // detached, and never changed
  static thread_local constinit Descriptor* current_;
};

// Gives the calling thread's descriptor back: what it retired is handed over. A later transaction of the thread starts
// anew. Called by itself at thread exit. Fatal inside a transaction.
void thread_exit() noexcept;

}  // namespace loam::tm
