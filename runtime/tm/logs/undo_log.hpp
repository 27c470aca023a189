// undo_log: the values that in-place writes have replaced. The write set's entries hold them.
//   An entry holds the old value of the bytes in its mask. The record of a locked stripe points to the stripe's first
//   entry, which will release it. Later entries are linked behind that one, the newest first. Other threads that meet
//   the lock follow the links to see which words its owner has written (cause.hpp), so `address` and `next` are atomic.
//   The first write of a word in each closed part logs its old value. Undoing a part restores the values in reverse
//   order. The locks of the part stay, as entries without a value.
// Invariants
//   U1 The record of a stripe that this attempt has locked points to a live entry (below write_end) of that stripe.
//   U2 Restoring the entries from the end back to any savepoint gives the memory as it was at that savepoint.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/words.hpp"
#include "runtime/tm/logs/write_set.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// The data of an undo log besides its entries.
struct UndoLog {
  WriteEntry* newest_savepoint;  // no savepoint that may still be restored lies above it
  WriteEntry* rolled_back_end;   // of the entries of the attempt that was rolled back last
  std::uint64_t rolled_back_to;  // and the version that its records were given; 0: it had locked none
};

// Whether `first` or an entry behind it, logged since `savepoint`, holds an old value of all bytes of `mask`: then a
// part that began at the savepoint needs no other entry.
inline bool is_noted(const WriteEntry& first, const Word* address, Word mask, const WriteEntry* savepoint) noexcept {
  const auto gives = [&](const WriteEntry& entry) {
    return holds(entry, address) && (entry.mask & mask) == mask && &entry >= savepoint;
  };
  if (gives(first)) return true;
  // relaxed: own chain
  for (const WriteEntry* entry = first.next.load(std::memory_order_relaxed); entry != nullptr;
       entry = entry->next.load(std::memory_order_relaxed))
    if (gives(*entry)) return true;
  return false;
}

// Logs the value of a word before it is written. Its stripe is locked, and `first` is the stripe's first entry.
[[gnu::always_inline]] inline void note(Descriptor& d, WriteEntry& first, Word* address, Word mask) noexcept {
  WriteEntry& entry = *d.write_end;
  fill(entry, first.next.load(std::memory_order_relaxed), address, load_whole(address), mask, d.no_record);
  first.next.store(&entry, std::memory_order_relaxed);  // relaxed: a hint to others (fill)
  added(d);
}

// Restores the values of all entries from `from` on, the newest first.
inline void put_back(const Descriptor& d, const WriteEntry* from) noexcept {
  for (const WriteEntry* entry = d.write_end; entry != from;) {
    --entry;
    store_masked(address_of(*entry), entry->value, entry->mask);
  }
}

// After put_back(d, from): drops the entries from `from` on, except that each lock taken since keeps one (U1).
inline void drop_values(Descriptor& d, WriteEntry* from) noexcept {
  for (WriteEntry* entry = d.write_end; entry != from;) {
    --entry;
    if (entry->record != &d.no_record) continue;
    // The newest of its chain: those behind it in the log are gone already.
    Orec& record = shared.map.record(address_of(*entry));
    WriteEntry& first = *first_entry(record.load(std::memory_order_relaxed));  // relaxed: own lock
    first.next.store(entry->next.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  WriteEntry* kept = from;
  for (const WriteEntry* entry = from; entry != d.write_end; ++entry) {
    if (entry->record == &d.no_record) continue;
    Orec& record = *entry->record;
    fill(*kept, nullptr, address_of(*entry), 0, 0, record);
    kept->old_version = entry->old_version;
    // release: publishes the entry to threads that find the lock, as the lock CAS did.
    record.store(d.locked_word | reinterpret_cast<std::uintptr_t>(kept), std::memory_order_release);
    ++kept;
  }
  d.write_end = kept;
}

}  // namespace loam::tm
