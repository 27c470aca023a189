// mapped: code that all transactions over ownership records share: a handle that keeps the mapping's formula in
// registers, and the log of the records that were read.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// A transaction's handle: four words, copied freely. The formula is fixed while attempts run. This handle is for table
// and shadow records, whose index is a shift and a mask.
class Mapped {
 public:
  explicit Mapped(Descriptor& d) noexcept
      : d_(&d), base_(shared.map.base), mask_(shared.map.mask), shift_(shared.map.shift) {}
  Descriptor& descriptor() const noexcept { return *d_; }

 protected:
  std::uint64_t index_of(const void* address) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) >> shift_) & mask_;
  }
  Orec& record_of(const void* address) const noexcept { return base_[index_of(address)]; }

  Descriptor* d_;
  Orec* base_;
  std::uint64_t mask_;
  unsigned shift_;
};

// The handle for algorithms that support the hash as well: an instruction more for each access (docs/adr/0010).
class HashMapped {
 public:
  explicit HashMapped(Descriptor& d) noexcept
      : d_(&d), base_(shared.map.base), multiplier_(shared.map.formula.multiplier), drop_(shared.map.formula.drop) {}
  Descriptor& descriptor() const noexcept { return *d_; }

 protected:
  template <class U>
  Orec& record_of(const U* address) const noexcept {
    return base_[Formula{multiplier_, drop_}.index(address)];
  }

  Descriptor* d_;
  Orec* base_;
  std::uint64_t multiplier_;
  unsigned drop_;
};

template <bool kBlame>
[[gnu::always_inline]] inline void log_read(Descriptor& d, Orec& record, const Word* word) noexcept {
  Orec** const cursor = d.read_cursor;
  if (cursor == d.read_limit) [[unlikely]]
    d.reads.full();
  *cursor = &record;
  if constexpr (kBlame) d.read_addresses.begin()[cursor - d.reads.begin()] = word;
  d.read_cursor = cursor + 1;
}

// Takes the place of a read that was released early in the read set: free, and older than every snapshot.
inline constinit Orec released_read{0};

// Drops the newest read of this record. Other reads of the record, made for other words, stay.
inline void forget_read(Descriptor& d, const Orec& record) noexcept {
  for (Orec** entry = d.read_cursor; entry != d.reads.begin();)
    if (*--entry == &record) {
      *entry = &released_read;
      return;
    }
}

// Calls f(record) for each record of the read set.
template <class F>
void for_each_read(Descriptor& d, F&& f) {
  for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry) f(**entry);
}

// Whether every record that was read is free and has a version of at most `snapshot`.
inline bool read_set_unchanged(Descriptor& d, std::uint64_t snapshot) noexcept {
  for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry)
    if ((*entry)->load(std::memory_order_acquire) > snapshot) return false;
  return true;
}

}  // namespace loam::tm
