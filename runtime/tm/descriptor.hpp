// Descriptor: what a thread's transactions are made of. One per thread slot, in OS pages, reused after thread exit and
// never unmapped: other threads look into it when they meet a record that it has locked.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/reclaim/epoch.hpp"
#include "runtime/tm/log.hpp"
#include "runtime/tm/mapping.hpp"
#include "runtime/tm/types.hpp"

#include <atomic>

namespace loam::tm {

// A word to be written at commit. Entries of one stripe form a chain from the first (whose index is in the record).
struct WriteEntry {
  std::atomic<Word*> address;  // atomic: a thread that meets the lock reads it, to name the cause of its abort
  Word value;                  // of the whole word
  Word mask;                   // which bits of it are written
  Orec* record;
  std::uint64_t old_version;  // of the record before it was locked; kChained in later entries of the stripe
  std::atomic<std::uint64_t>
      next;  // the stripe's next entry in bytes from the log's begin, 0: none; atomic as `address`
};
inline constexpr std::uint64_t kChained = ~0ULL;

// An empty write set ends here: the log's first place is not used, so that 0 can mean no entry.
inline constexpr std::uint64_t kNoWrites = sizeof(WriteEntry);

// Where the transactional part of a thread stands.
// detached: the descriptor of a thread without one.
enum class Mode : std::uint8_t { idle, read_only, update, detached };

struct alignas(platform::kApartBytes) Descriptor {
  // -- read at every access -------------------------------------------------------------------------------------------
  std::uint64_t snapshot = 0;  // values read are valid together at this clock value
  Orec** read_cursor = nullptr;
  Orec** read_limit = nullptr;
  std::uint64_t write_bytes = 0;  // end of the write set, from the log's begin
  std::uint64_t write_bytes_max = 0;
  std::uint64_t locked_word = 0;  // what this thread puts into a record, less the entry
  std::uint64_t allocated_count = 0;
  reclaim::Participant* participant = nullptr;
  Mode mode = Mode::idle;
  bool memory_used = false;       // the attempt has allocated or released
  bool writes_irregular = false;  // it wrote parts of words, or several words of a stripe
  unsigned slot = 0;
  platform::Checkpoint checkpoint;

  // -- once per attempt -----------------------------------------------------------------------------------------------
  // Written by the owner alone, with plain increments; read by whoever sums up, after the owner has stopped.
  Statistics statistics;

  // -- logs -----------------------------------------------------------------------------------------------------------
  Log<Orec*> reads;  // entries are records' addresses: 8 bytes each
  Log<WriteEntry> writes;
  Log<void*> allocated;             // the attempt's new blocks
  Log<const Word*> read_addresses;  // blame only: the word behind each entry of `reads`

  reclaim::Limbo limbo;

  // The calling thread's descriptor; made at its first transaction, given back at its exit.
  static Descriptor& current() noexcept {
    Descriptor& d = *current_;
    return d.mode == Mode::detached ? attach_thread() : d;
  }
  // The same, or one whose mode is detached: for who tests the mode anyway.
  static Descriptor& current_or_detached() noexcept { return *current_; }
  static Descriptor& attach_thread() noexcept;
  // The descriptor of a slot, or nullptr if no thread ever had it.
  static Descriptor* of_slot(unsigned slot) noexcept;

 private:
  friend void thread_exit() noexcept;

  static Descriptor nobody_;  // detached, and never changed
  static thread_local constinit Descriptor* current_;
};

// Gives the calling thread's descriptor back: what it retired is handed over. A later transaction of the thread starts
// anew. Called by itself at thread exit. Fatal inside a transaction.
void thread_exit() noexcept;

}  // namespace loam::tm
