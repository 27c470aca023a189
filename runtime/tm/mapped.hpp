// mapped: what transactions over ownership records share: the handle with the formula of the mapping in registers, and
// the log of records that were read.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm {

// A transaction's handle: four words, copied freely. The formula is fixed while attempts run.
class Mapped {
 public:
  explicit Mapped(Descriptor& d) noexcept : d_(&d), base_(shared.map.base), formula_(shared.map.formula) {}
  Descriptor& descriptor() const noexcept { return *d_; }

 protected:
  template <class U>
  std::uint64_t index_of(const U* address) const noexcept {
    return formula_.index(address);
  }
  template <class U>
  Orec& record_of(const U* address) const noexcept {
    return base_[index_of(address)];
  }

  // A read that keeps no log: valid if the record is free and no newer than the snapshot, before and after. Else the
  // result is that of failed(record, seen).
  //   P1, P2 of the algorithms that use it: record load(acquire) before the data / its release store after the
  //   write-back; data load(acquire), then the record again / data store(release) after the lock's CAS.
  template <class U, class Failed>
  [[gnu::always_inline]] U load_unlogged(const U* address, Failed&& failed) const {
    // The record is addressed anew each time, or a pointer to it would be computed that only failures need.
    std::uint64_t index = index_of(address);
    const std::uint64_t before = base_[index].load(std::memory_order_acquire);  // P1
    if (before > d_->snapshot) [[unlikely]]
      return failed(base_[platform::opaque(index)], before);
    LOAM_POINT("tm.reading");
    const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
    index = platform::opaque(index);
    if (!platform::holds(base_[index], before)) [[unlikely]] {  // relaxed: P2 orders it after the data
      Orec& record = base_[platform::opaque(index)];
      return failed(record, record.load(std::memory_order_acquire));
    }
    return value;
  }

  Descriptor* d_;
  Orec* base_;
  Formula formula_;
};

template <bool kBlame>
[[gnu::always_inline]] inline void log_read(Descriptor& d, Orec& record, const Word* word) noexcept {
  Orec** const cursor = d.read_cursor;
  if (cursor == d.read_limit) [[unlikely]]
    d.reads.full();
  *cursor = &record;
  if constexpr (kBlame) d.read_addresses.begin()[cursor - d.reads.begin()] = word;
  // In memory: the entry's store is under way, and the cursor is in nobody's register but this one's.
  platform::keep_in_memory(d.read_cursor);
  ++d.read_cursor;
}

// What the read set holds in place of a read that was released early: free, and older than every snapshot.
inline constinit Orec released_read{0};

// Drops one read of this record, the newest: others of it, made for other words, go on to count.
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
