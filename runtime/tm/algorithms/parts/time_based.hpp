// time_based: what algorithms share whose reads are valid at a value of the version clock, the attempt's snapshot.
//   A read is valid if its record is free and not newer than the snapshot. A read-only attempt keeps no log: all of its
//   reads are valid at its snapshot. An update logs the records that it reads, so that they can be validated later.
//   Source  TL2, DISC 2006; extending the snapshot: LSA, DISC 2006.
//   Self, the algorithm, derives from TimeBased<Self, ...> and provides
//     [[noreturn]] static void conflict(Descriptor&, const Orec& record, std::uint64_t seen, const Word*);
//                                  ends the attempt because `record`, which was to guard the word (nullptr: not kept),
//                                  was `seen`; starts the next one
//   The labels of memory orders are those in the head of etl_wb.hpp.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/blame/cause.hpp"
#include "runtime/tm/logs/write_set.hpp"
#include "runtime/tm/records/mapped.hpp"

#include <atomic>

namespace loam::tm {

// kBlame: as in algorithm.hpp.  Handle: Mapped or HashMapped (mapped.hpp).  kValidate: the order of loads that validate
template <class Self, bool kBlame, class Handle = Mapped, std::memory_order kValidate = std::memory_order_acquire>
struct TimeBased {
  // Reads only, keeps no log. Looks at the record before and after the data.
  class ReadOnlyTx : public Handle, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Handle::Handle;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Orec& record = this->record_of(address);
      const std::uint64_t before = record.load(kValidate);  // P1
      if (before > this->d_->snapshot) [[unlikely]]
        return Self::load_turned_down(*this->d_, record, before, address);
      LOAM_POINT("tm.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        return Self::load_turned_down(*this->d_, record, record.load(std::memory_order_acquire), address);
      return value;
    }
  };

  static void begin_read_only(Descriptor& d) noexcept {
    if (!lifecycle::enter_reading_at_snapshot(d)) [[likely]]
      renew(d);
    LOAM_POINT("tm.began");
    d.mode = Mode::read_only;
  }

  // Keeps the snapshot that the thread has, its last commit's for one: others write the clock's line all the time, and
  // what turns out to be newer extends. A value that passes as old enough is the newest, also by real time.
  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    entered_update(d);
  }

  // What begins an update within its announcement, and with a snapshot.
  [[gnu::always_inline]] static void entered_update(Descriptor& d) noexcept {
    LOAM_POINT("tm.began");
    d.read_cursor = d.reads.begin();
    d.mode = Mode::update;
  }

  // Every read was valid at the snapshot: nothing is left to check.
  static void commit_read_only(Descriptor& d) noexcept {
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, d.snapshot);
    lifecycle::committed_reading(d);
  }

  // After rollback().
  static bool unchanged(Descriptor& d) noexcept { return read_set_unchanged(d, d.snapshot); }
  template <class F>
  static void waits_for(Descriptor& d, F&& f) noexcept {
    for_each_read(d, f);
  }
  static bool has_read(Descriptor& d) noexcept { return d.read_cursor != d.reads.begin(); }

 protected:
  // A read of a read-only attempt whose record was `seen`: locked, newer than the snapshot, or changed during the read.
  template <class U>
  [[gnu::always_inline]] static U load_turned_down(Descriptor& d, Orec& record, std::uint64_t seen, const U* address) {
    Self::conflict(d, record, seen, word_of(address));
  }

  // Takes the snapshot of now.
  [[gnu::always_inline]] static void renew(Descriptor& d) noexcept {
    d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4
  }

  // Moves the snapshot to now if everything read is still as it was.
  static void extend(Descriptor& d) noexcept {
    const std::uint64_t now = version_clock.now.load(std::memory_order_acquire);  // P4: before validating
    LOAM_POINT("tm.extending");
    validate(d);
    d.snapshot = now;
  }

  // Aborts unless every record of the read set is at most as new as the snapshot, or locked by this attempt (which
  // locked it at such a version).
  static void validate(Descriptor& d) noexcept {
    for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry) {
      const std::uint64_t now = (*entry)->load(kValidate);  // P3
      if (now > d.snapshot && !is_locked_by(now, d.slot)) [[unlikely]]
        Self::conflict(d, **entry, now, word_read(d, entry));
    }
  }

  // The word behind an entry of the read set; nullptr: not kept.
  static const Word* word_read(const Descriptor& d, Orec* const* entry) noexcept {
    if constexpr (kBlame) return d.read_addresses.begin()[entry - d.reads.begin()];
    return nullptr;
  }

  // `record`, which guards `word`, was seen locked by another. Returns once it is free, if the manager waits for that.
  [[gnu::noinline, gnu::cold]] static void meet(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                const Word* word) noexcept {
    if (!contention::wait_for_owner(d, record, seen)) Self::conflict(d, record, seen, word);
  }

  // The cause of an abort on `record`, which guards `word` and was `seen`.
  static AbortCause cause(Descriptor& d, const Orec& record, std::uint64_t seen, const Word* word) noexcept {
    return word == nullptr ? AbortCause::unknown : cause_of<kBlame>(d, record, seen, word);
  }
};

// Stores a new value of a redo log. kParts: not whole words alone.
template <bool kParts>
[[gnu::always_inline]] inline void write_word_back(const WriteEntry& entry) noexcept {
  if constexpr (kParts)
    store_masked(address_of(entry), entry.value, entry.mask);  // P2
  else
    std::atomic_ref<Word>(*address_of(entry)).store(entry.value, std::memory_order_release);  // P2
}

}  // namespace loam::tm
