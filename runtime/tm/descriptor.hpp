// Descriptor: the data of a thread's transactions: snapshot, logs, counts. There is one per thread slot, in OS pages.
// It is reused after a thread has ended and never unmapped, because other threads read it when they find a record that
// its thread has locked.
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

// A word to be written at commit. The entries of one stripe form a list; the record holds the address of the first.
struct WriteEntry {
  std::atomic<Word*> address;     // atomic: a thread that finds the lock reads it, to name the cause of its abort
  Word value;                     // of the whole word
  Word mask;                      // which bits of it are written
  Orec* record;                   // the stripe's in its first entry, a dummy word in the others
  std::uint64_t old_version;      // of the record before it was locked
  std::atomic<WriteEntry*> next;  // the stripe's next entry; atomic as `address`
};

// The owner's first entry of the stripe whose record was seen as `locked`.
inline WriteEntry* first_entry(std::uint64_t locked) noexcept {
  return reinterpret_cast<WriteEntry*>(entry_of(locked));
}

// The state of a thread's transaction.
//   nested    in a closed part of an update transaction     serial    runs alone, cannot abort
//   idle      no transaction runs                           detached  the shared descriptor of threads that have none
// Order matters: `mode <= read_only` means that an attempt of the algorithm runs, `mode <= nested` that it may write.
// Inline accesses of C check nothing else (include/loam/tm_inlined.h).
enum class Mode : std::uint8_t { update, nested, read_only, serial, idle, detached };

struct AlgorithmDescription;
struct Descriptor;
struct Part;

// The functions and properties of an algorithm that an attaching thread needs.
struct Hooks {
  const AlgorithmDescription* description;
  void (*attach)(Descriptor&);
  void (*rollback)(Descriptor&, AbortCause);
  bool uses_records, knows_hash, privatizes_safely;
  bool switches;  // it changes between two algorithms (switching.hpp)
};

// A function to call when a transaction's outcome is known. of: for which outcome; restore: whenever an attempt or a
// part is undone, at once
struct Handler {
  enum class Of : std::uint8_t { commit, abort, restore };
  static constexpr std::size_t kArgumentBytes = 48;

  void (*call)(void* argument);
  Of of;
  alignas(std::max_align_t) std::byte argument[kArgumentBytes];
};

// Data of the contention manager about a transaction that has aborted (contention.hpp).
struct Contention {
  const Orec* record = nullptr;  // that it met last
  std::uint64_t seen = 0;        // and as what
  std::uint64_t earned = 0;      // karma: the work that it has lost
  unsigned stalls = 0;           // aborts of this transaction behind which the owner was seen standing still
  std::uint64_t woken_cpu = 0;   // the thread's CPU time when retry() last woke this transaction; 0: not yet
  std::atomic<std::uint64_t> priority{0};
  base::Random random{0};  // a stream of the slot's own
};

// The checkpoint is the base class: the body of an attempt gets its address, which is also that of the descriptor.
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
  platform::Stocks* stocks = &platform::no_stocks;  // what its attempts allocate from (memory.hpp)
  Mode mode;
  // The commit must do more than write whole words and release their records. Examples: the attempt has released
  // memory, or has written a part of a word.
  bool special = false;
  bool quiesces = false;  // its commit returns once no attempt runs that ran beside it (lifecycle::privatize)
  bool awaited = false;   // commits of others may wait for the attempt: it is published, or inside a grace period
  unsigned slot = 0;
  Orec no_record{0};  // of write entries behind the first of their stripe
  // Under auto (auto.hpp): whether the attempt, or the last one, is one of the scalable algorithm, and whether its commit
  // is to look at what runs.
  bool scales = false, looks = false;

  reclaim::Participant participant;  // on lines of its own: others look at it

 private:
  friend struct InlinedLayout;  // c/inlined.cpp
  static constexpr std::size_t kStateBytes = 1024;
  // The members above fix its offset, which inline accesses of C depend on.
  alignas(platform::kApartBytes) std::byte state_[kStateBytes]{};

  template <class State>
  static constexpr std::size_t place_of() noexcept {
    if constexpr (requires { State::kAtEnd; })
      return kStateBytes - sizeof(State);
    else
      return 0;
  }

 public:
  // -- once per attempt -----------------------------------------------------------------------------------------------
  // Only the owner writes it, with plain increments. Other threads read it to add up, after the owner has stopped.
  Statistics statistics;

  // -- logs -----------------------------------------------------------------------------------------------------------
  Log<Orec*> reads;  // entries are records' addresses: 8 bytes each
  Log<WriteEntry> writes;
  Log<void*> allocated;             // the attempt's new blocks that came from no stock, and its parts' (memory.hpp)
  Log<const Word*> read_addresses;  // blame only: the word behind each entry of `reads`

  std::uint64_t stocks_taken = 0;  // a bit for each stock from which attempts have taken blocks since the last abort
  std::uint64_t stocks_used = 0;   // the same for hardware attempts that committed since these stocks were last filled

  Contention contention;
  Part* part = nullptr;                   // the innermost part that can be undone
  std::uint64_t generation = 0;           // of serial transactions, when the attempt asked to wait
  const WriteEntry* woken_end = nullptr;  // waiting.hpp

  Log<Handler> handlers;                           // in the order in which they were given
  std::size_t handler_first = 0, handler_end = 0;  // those of the attempt; before them, of one whose handlers run now

  reclaim::Limbo limbo;

  // Read by commits of other threads, which may have to wait for this thread (lifecycle.hpp). Only under
  // Privatization::commit, and algorithms that need it.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> published{0};
  // The same under Privatization::shared (grace.hpp): odd inside an attempt.
  std::atomic<std::uint64_t> running{0};
  Descriptor* next_in_group = nullptr;
  unsigned group = 0;
  // Under auto: validations of its attempts of norec. Others add up (switching.hpp).
  std::atomic<std::uint64_t> validations{0};
  bool reads_now = false;  // its last attempt has failed: the next one does not begin with a settled snapshot
  // Blocks and bytes that wait in the thread's limbo, as of its last commit that freed memory. Other threads read them
  // to add up.
  std::atomic<std::uint64_t> held_blocks{0}, held_bytes{0};

  // The algorithm's own data; its attach() makes it.
  template <class State>
  State& state() noexcept {
    static_assert(sizeof(State) <= kStateBytes && alignof(State) <= platform::kApartBytes);
    return *std::launder(reinterpret_cast<State*>(state_ + place_of<State>()));
  }
  // Makes the State, once per descriptor.
  template <class State>
  State& make_state() noexcept {
    static_assert(std::is_trivially_destructible_v<State>);
    return *::new (state_ + place_of<State>()) State;
  }
  // Two states that lie beside one another, one of them at the end (State::kAtEnd).
  template <class First, class Last>
  static constexpr bool kHasRoomForBoth =
      place_of<First>() == 0 && place_of<Last>() != 0 && sizeof(First) + sizeof(Last) <= kStateBytes;

  // The calling thread's descriptor, or the shared one whose mode is detached. A thread gets a descriptor at its first
  // transaction and returns it when it ends.
  static Descriptor& current_or_detached() noexcept { return *current_; }
  // The same; but if the process has had a transaction, a thread without a descriptor gets one now.
  static Descriptor& current() noexcept;
  static Descriptor& attach_thread(const Hooks& algorithm) noexcept;
  // The descriptor of a slot, or nullptr if no thread ever had it.
  static Descriptor* of_slot(unsigned slot) noexcept;
  // Runs work(d) with the calling thread's descriptor d. Transactions in `work` use another descriptor, so d stays as
  // it is.
  static void set_aside(void (*work)(Descriptor&) noexcept) noexcept;
  // In the child of a fork: descriptors of threads that are not there are forgotten, their slots are free.
  static void forget_other_threads() noexcept;

 private:
  friend void thread_exit() noexcept;

  static constinit Descriptor nobody_;  // detached, and never changed
  static thread_local constinit Descriptor* current_;
};

// Returns the calling thread's descriptor, and hands over the blocks that it has retired. A later transaction of the
// thread gets a descriptor again. A thread that ends calls this by itself. Ends the program inside a transaction.
void thread_exit() noexcept;

}  // namespace loam::tm
