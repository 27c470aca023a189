// visible_reads: how a thread shows what it reads, and how another one finds out (two_phase.hpp, which has the argument).
//   A byte of the stripe (read_bytes.hpp) as a rule. Where two threads of a group read a stripe, the second one marks the
//   stripe's record. A reader that finds the mark sets its bit instead (stripes.hpp), on a line that no other thread
//   writes: of what all threads read and few write, such as the root of a tree, the group's line would move with each read.
//   A writer looks at all bytes, and at all bits where the version that its lock has replaced is marked.
//   Versions  in steps of two. An odd one is marked; the next version is not.
//   The log   of reads has the record's address, and one more for a read that is shown by a bit.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/records/mapped.hpp"
#include "runtime/tm/records/read_bytes.hpp"
#include "runtime/tm/records/stripes.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm::visible_reads {

inline constexpr std::uint64_t kMark = 1;
inline constexpr unsigned kNobody = ~0U;

constexpr bool is_marked(std::uint64_t record) noexcept { return (record & (kLockedBit | kMark)) == kMark; }
constexpr std::uint64_t next_version(std::uint64_t version) noexcept { return (version | kMark) + 1; }
constexpr bool are_same_version(std::uint64_t record, std::uint64_t other) noexcept {
  return ((record ^ other) & ~kMark) == 0;
}
static_assert(is_marked(5) && !is_marked(4) && !is_marked(kLockedBit | 1));
static_assert(next_version(4) == 6 && next_version(5) == 6 && are_same_version(4, 5) && !are_same_version(5, 6));

// What a thread shows its reads with.
struct Shown {
  read_bytes::Place place;
  stripes::Indicators* bits = nullptr;  // made before the thread's first attempt

  bool has_bit(std::uint64_t stripe) const noexcept {
    // relaxed: nobody else writes it
    return (bits[stripes::indicators_of(stripe)].load(std::memory_order_relaxed) & stripes::indicator_bit(stripe)) != 0;
  }
  void set_bit(std::uint64_t stripe) const noexcept {
    stripes::Indicators& word = bits[stripes::indicators_of(stripe)];
    word.exchange(word.load(std::memory_order_relaxed) | stripes::indicator_bit(stripe),
                  std::memory_order_seq_cst);  // T1, T4; relaxed: nobody else writes it
  }
  void set_byte(std::uint64_t stripe) const noexcept {
    place.of(stripe).exchange(1, std::memory_order_seq_cst);  // T1
  }
  // Where nobody else can lock the stripe.
  void set_byte_within_lock(std::uint64_t stripe) const noexcept {
    place.of(stripe).store(1, std::memory_order_relaxed);
  }
  void clear_byte(std::uint64_t stripe) const noexcept { place.of(stripe).store(0, std::memory_order_release); }  // T3
  // All 64 of a word at once: they are this attempt's, and it ends.
  void clear_bits(std::uint64_t stripe) const noexcept {
    bits[stripes::indicators_of(stripe)].store(0, std::memory_order_release);  // T3
  }

  // Whether another thread of the group is seen reading the stripe. relaxed: a hint
  bool has_company(std::uint64_t stripe) const noexcept {
    const read_bytes::Group group(read_bytes::groups.words[place.group].load(std::memory_order_relaxed));
    const read_bytes::Byte* const bytes = group.of(stripe);
    for (unsigned index = 0, end = group.places(); index < end; ++index)
      if (index != place.index && bytes[index].load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
};

// Of an entry of the log of reads.
inline Orec* shown_by_bit(Orec* record) noexcept {
  return reinterpret_cast<Orec*>(reinterpret_cast<std::uintptr_t>(record) | 1);
}
inline bool is_shown_by_bit(const Orec* entry) noexcept { return (reinterpret_cast<std::uintptr_t>(entry) & 1) != 0; }
inline Orec* record_of(Orec* entry) noexcept {
  return reinterpret_cast<Orec*>(reinterpret_cast<std::uintptr_t>(entry) & ~std::uintptr_t{1});
}

// Marks a record that was seen as `version`. It may have changed since. relaxed: a read-modify-write, so whoever loads the
// marked version has what was released with the version (T2)
inline void mark(Orec& record, std::uint64_t version) noexcept {
  record.compare_exchange_strong(version, version | kMark, std::memory_order_relaxed);
}

// The slot of a thread whose bit for the stripe is set, other than `self`, or kNobody.
[[gnu::noinline]] inline unsigned reader_by_bit(std::uint64_t stripe, unsigned self) noexcept {
  const unsigned end = stripes::readers.end.load(std::memory_order_seq_cst);  // stripes.B
  for (unsigned slot = 0; slot < end; ++slot) {
    if (slot == self) continue;
    const stripes::Indicators* const theirs = stripes::readers.of_slot[slot].load(std::memory_order_seq_cst);
    if (theirs == nullptr) continue;
    const std::uint64_t bits = theirs[stripes::indicators_of(stripe)].load(std::memory_order_seq_cst);  // T1, T4
    if ((bits & stripes::indicator_bit(stripe)) != 0) return slot;
  }
  return kNobody;
}

// The slot of a thread other than `self` that reads the stripe, whose record `self` has locked where it had `version`, or
// kNobody.
inline unsigned reader_of(std::uint64_t stripe, std::uint64_t version, const Descriptor& self,
                          const Shown& own) noexcept {
  for (unsigned number = 0;; ++number) {  // behind the last group there is a word that is none
    const read_bytes::Group group = read_bytes::groups.of(number);
    if (!group.is_there()) {
      if (!is_marked(version) && !group.is_nobodys()) return kNobody;
      return reader_by_bit(stripe, self.slot);
    }
    const read_bytes::Byte* const bytes = group.of(stripe);
    for (unsigned index = 0, end = group.places(); index < end; ++index)
      if (bytes[index].load(std::memory_order_seq_cst) != 0 &&  // T1
          (number != own.place.group || index != own.place.index)) [[unlikely]]
        return read_bytes::groups.slots[number][index].load(std::memory_order_relaxed) - 1U;
  }
}

}  // namespace loam::tm::visible_reads
