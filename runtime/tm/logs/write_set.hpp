// write_set: a redo log for algorithms whose locked records point to its entries.
//   The entries of a stripe form a chain. The record holds the address of the first, and only the first releases the
//   record. Other threads that find the lock follow the chain to find the cause of their abort, so `address` and `next`
//   are atomic.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/words.hpp"

namespace loam::tm {

// The first entry of a stripe that this attempt has locked: the record's word without the bits that all locks of this
// thread have in common. A record that this attempt has not locked gives an address beyond every write set.
[[gnu::always_inline]] inline WriteEntry* own_entry(const Descriptor& d, std::uint64_t record) noexcept {
  return reinterpret_cast<WriteEntry*>(record ^ d.locked_word);
}

inline bool holds(const WriteEntry& entry, const Word* address) noexcept {
  return entry.address.load(std::memory_order_relaxed) == address;  // relaxed: own entries
}
inline Word* address_of(const WriteEntry& entry) noexcept {
  return entry.address.load(std::memory_order_relaxed);  // relaxed: own entries
}

// The entry for `address` in the chain of a stripe, or nullptr.
inline WriteEntry* find(WriteEntry* entry, const Word* address) noexcept {
  while (entry != nullptr && !holds(*entry, address)) entry = entry->next.load(std::memory_order_relaxed);
  return entry;
}

[[gnu::always_inline]] inline void fill(WriteEntry& entry, WriteEntry* next, Word* address, Word value, Word mask,
                                        Orec& record) noexcept {
  // relaxed: the lock CAS publishes the entry to threads that find the lock; later entries are only a hint to them.
  entry.address.store(address, std::memory_order_relaxed);
  entry.value = value;
  entry.mask = mask;
  entry.record = &record;
  entry.next.store(next, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void added(Descriptor& d) noexcept {
  if (++d.write_end == d.write_limit) [[unlikely]]
    d.writes.full();
}

// Adds the rest of a partly written word to its entry. No other thread can write the word now. So reads find the whole
// word in the entry.
inline void complete(Descriptor& d, WriteEntry& entry) noexcept {
  entry.value = (load_whole(address_of(entry)) & ~entry.mask) | (entry.value & entry.mask);
  d.special = true;
}

inline void merge(Descriptor& d, WriteEntry& entry, Word value, Word mask) noexcept {
  entry.value = (entry.value & ~mask) | (value & mask);
  entry.mask |= mask;
  if (entry.mask != ~Word{0}) d.special = true;
}

// A new entry behind a stripe's first, before `chain`. The first releases the stripe; this one, at commit and at abort,
// releases a dummy word.
[[gnu::always_inline]] inline void append(Descriptor& d, WriteEntry& first, WriteEntry* chain, Word* address,
                                          Word value, Word mask) noexcept {
  WriteEntry& entry = *d.write_end;
  fill(entry, chain, address, value, mask, d.no_record);
  first.next.store(&entry, std::memory_order_relaxed);
  if (mask != ~Word{0}) complete(d, entry);
  added(d);
}

// The earlier contents of an older entry that a closed part has changed.
struct Overwritten {
  WriteEntry* entry;
  Word value;
  Word mask;
  WriteEntry* next;
};

// The write set's history within closed parts.
class WriteHistory {
 public:
  void reserve() noexcept { log_.reserve(kMax, 0, "history of overwritten values"); }
  std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }

  void note(WriteEntry& entry) noexcept {
    if (size_ == log_.capacity()) log_.full();
    log_.begin()[size_++] = {&entry, entry.value, entry.mask, entry.next.load(std::memory_order_relaxed)};
  }
  void undo_to(std::size_t size) noexcept {
    while (size_ > size) {
      const Overwritten& old = log_.begin()[--size_];
      old.entry->value = old.value;
      old.entry->mask = old.mask;
      old.entry->next.store(old.next, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t kMax = std::size_t{1} << 22;
  Log<Overwritten> log_;
  std::size_t size_ = 0;
};

}  // namespace loam::tm
