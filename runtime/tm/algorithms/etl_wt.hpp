// etl-wt: encounter-time locking with write-through, time-based reads that look at their record once.
//   A write locks the ownership record of its stripe, logs the old value and stores the new one in place. A read loads
//   the value and then its record, which must be free and not newer than the snapshot. A commit takes a clock value,
//   validates and releases. An abort restores the old values, takes a clock value too, and releases with that.
//   Source      TinySTM, PPoPP 2008 (WT-ETL); releasing aborts with a clock value and reading the record once: the time
//               base of LSA, DISC 2006, and TL2, DISC 2006, applied to undo logs.
//   Guarantees  opacity. Publication safe. Not privatization safe by itself: memory freed in a transaction waits for
//               quiescence (memory.hpp); other plain use after unlinking must wait as well, for an attempt that will
//               abort may have written what was unlinked and puts it back late. Privatization::commit waits for it.
//   Conflicts   An attempt that finds a record locked asks the contention manager. One that fails to validate aborts.
//   Cost        a read looks at its record once, in etl-wb twice. A read after a write finds the value in place. A
//               commit stores only versions. The abort of an attempt that has written costs a clock value and its
//               stores, and readers of its stripes must extend. The locks of a part that is undone stay until the
//               attempt ends. Two waiters (retry) that write the same stripe before they wait sometimes wake each
//               other.
//   When not    many aborts with large write sets; memory that uninstrumented code reads while transactions write it.
// Why loading the record once is enough
//   W1 (clock) A record is released with a clock value that its owner took, by fetch_add, after its last store to the
//      stripe: commits after all writes, aborts after everything is back. So if a read's snapshot has reached the
//      version of a release, the stores before that release happened before the snapshot was loaded.
//   W2 (not dirty) A read loads value, then record, and accepts a free record of version o <= snapshot. If the value
//      came from a store under a lock, the load acquired that store, so the record is that lock or something later: o
//      is the lock's release or a later one, and by W1 every store up to that release happened before the read. The
//      value is the last of these stores: the owner's final value, never an intermediate one.
//   W3 (not old) If an owner had locked the record after the value was loaded and released it as o, its stores would by
//      W1 have happened before the load. And an owner that locks after the record was loaded takes a clock value after
//      that: it is later than the snapshot, because otherwise the load would have seen the lock.
//   If an abort restored the old version, W2 would not hold: the value could be dirty while the record looks untouched.
// Memory of an attempt that aborts is freed at once, although pointers to it were in shared memory. Only a read that W2
//   rejects can have loaded such a pointer, and the user never gets it. The words of these blocks are restored before
//   they are freed (rollback(), and restore() before lifecycle::take_back()). A lock that is still held on a freed
//   block's stripe is released in the record only, which is not in the block's memory.
// Memory orders; in brackets the failure without the pair
//   P1 publish  record store(release) after the last data store / record CAS(acq_rel) of the next owner
//               [the next owner notes an old value that is not the last]
//   P2 dirty    data store(release) after the lock CAS / data load(acquire), then record load
//               [a value under a lock that the look at the record does not see]
//   P3 commits  lock CAS(acq_rel), clock fetch_add(acq_rel), then validation / the same in the other committer
//               [write skew: each validates before the other's lock is visible]
//   P4 now      data stores, clock fetch_add's release (commits and aborts: W1) / clock load(acquire), in extend()
//               before validating  [the version passes, the value is from before it]
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/algorithms/parts/time_based.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/cause.hpp"
#include "runtime/tm/logs/undo_log.hpp"
#include "runtime/tm/records/mapped.hpp"

#include <atomic>

namespace loam::tm {

template <bool kBlame>
struct EtlWt : TimeBased<EtlWt<kBlame>, kBlame> {
  static constexpr AlgorithmDescription kDescription{
      .name = "etl-wt",
      .summary = "encounter-time locking, write-through, timestamp extension",
      .paper = "TinySTM, PPoPP 2008",
      .guarantees = "opacity; publication safe"};
  static constexpr bool kWritesInPlace = true;

 private:
  using Base = TimeBased<EtlWt, kBlame>;
  friend Base;

 public:
  // Reads only, keeps no log: a record newer than the snapshot means a new attempt. One look at it (W2, W3).
  class ReadOnlyTx : public Mapped, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Mapped::Mapped;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Orec& record = this->record_of(address);
      const U value = load_value(address);
      LOAM_POINT("tm.reading");
      const std::uint64_t after = record.load(std::memory_order_relaxed);  // relaxed: P2 orders it after the data
      if (after > this->d_->snapshot) [[unlikely]]
        conflict(*this->d_, record, after, word_of(address));
      return value;
    }
  };

  // Reads and writes. kNested: what it overwrites can be undone to the newest savepoint.
  template <bool kNested>
  class Writing : public Mapped, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Mapped::Mapped;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      const U value = load_value(address);
      LOAM_POINT("tm.reading");
      const std::uint64_t after = record.load(std::memory_order_relaxed);  // relaxed: P2 orders it after the data
      if (after > d.snapshot) [[unlikely]] {
        if (own_entry(d, after) < d.write_end) return value;
        return load_slow(d, record, address);
      }
      log_read<kBlame>(d, record, word_of(address));
      return value;
    }

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      if constexpr (kNested) return store_slow<true>(d, record, address, value, mask);
      if (mask != ~Word{0}) return store_slow<false>(d, record, address, value, mask);
      std::uint64_t version = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (version <= d.snapshot) [[likely]] {
        // A version up to the snapshot also covers this attempt's own earlier reads of the stripe: nothing was
        // committed to it since (the upgrade rule).
        if (lock(d, record, version, address, mask)) [[likely]]
          return std::atomic_ref<Word>(*address).store(value, std::memory_order_release);  // P2
      } else if (WriteEntry* const own = own_entry(d, version); own < d.write_end) {
        if (!holds(*own, address) || own->mask != ~Word{0}) {
          if (own->next.load(std::memory_order_relaxed) != nullptr)  // relaxed: own chain
            return store_chained(d, *own, address, value);
          note(d, *own, address, mask);
        }
        return std::atomic_ref<Word>(*address).store(value, std::memory_order_release);  // P2
      }
      store_slow<false>(d, record, address, value, mask);
    }

   private:
    // Not a member function of the object: the object must not escape, or its fields would leave their registers.
    template <class U>
    [[gnu::noinline]] static U load_slow(Descriptor& d, Orec& record, const U* address) {
      const Word* const word = word_of(address);
      for (;;) {
        const U value = load_value(address);
        LOAM_POINT("tm.reading");
        const std::uint64_t after = record.load(std::memory_order_acquire);
        if (is_locked_by(after, d.slot)) return value;
        // Also after extending: the record is not in the read set yet, so it is looked at once more, with the value.
        if (after <= d.snapshot) {
          log_read<kBlame>(d, record, word);
          return value;
        }
        if (is_locked(after))
          Base::meet(d, record, after, word);
        else
          Base::extend(d);
      }
    }
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  struct Savepoint {
    WriteEntry* write_end;
  };

  static void attach(Descriptor& d) noexcept { d.make_state<UndoLog>() = {d.writes.begin(), d.writes.begin(), 0}; }

  // Returns if the attempt has committed; otherwise the attempt restarts.
  static void commit_update(Descriptor& d) noexcept {
    if (const WriteEntry* const end = d.write_end; end != d.writes.begin()) {
      release(d, commit_version(d));
      waiting::notify(d, end);
    }
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, d.snapshot);
    lifecycle::committed(d);
  }

  // Leaves the memory as it was. The stripes that were locked get a version that no snapshot has reached (W1, W2).
  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    UndoLog& log = d.state<UndoLog>();
    log.rolled_back_end = d.write_end;
    log.rolled_back_to = 0;
    if (d.write_end != d.writes.begin()) {
      put_back(d, d.writes.begin());
      log.rolled_back_to = version_clock.now.fetch_add(1, std::memory_order_acq_rel) + 1;  // P4
      release(d, log.rolled_back_to);
    }
    lifecycle::aborted(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.state<UndoLog>().newest_savepoint = d.write_end;
    return {d.write_end};
  }

  // Puts back what was written since. Stripes locked since stay locked until the attempt ends: reads made under these
  // locks stay valid, and what the part has read stays in the read set.
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    put_back(d, savepoint.write_end);
    drop_values(d, savepoint.write_end);
    d.state<UndoLog>().newest_savepoint = savepoint.write_end;
  }

  // What the attempt itself has released counts as unchanged: its version is this attempt's alone. Stripes that it has
  // only written are looked at as well, since reads of them were not logged.
  static bool unchanged(Descriptor& d) noexcept {
    const UndoLog& log = d.state<UndoLog>();
    const auto same = [&](const Orec& record) {
      const std::uint64_t now = record.load(std::memory_order_acquire);
      return now <= d.snapshot || (log.rolled_back_to != 0 && now == log.rolled_back_to);
    };
    for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry)
      if (!same(**entry)) return false;
    for (const WriteEntry* entry = d.writes.begin(); entry != log.rolled_back_end; ++entry)
      if (entry->record != &d.no_record && !same(*entry->record)) return false;
    return true;
  }
  template <class F>
  static void waits_for(Descriptor& d, F&& f) noexcept {
    Base::waits_for(d, f);
    for (const WriteEntry* entry = d.writes.begin(); entry != d.state<UndoLog>().rolled_back_end; ++entry)
      if (entry->record != &d.no_record) f(*entry->record);
  }
  // Reads under own locks are not logged: what was locked counts as read.
  static bool has_read(Descriptor& d) noexcept {
    return Base::has_read(d) || d.state<UndoLog>().rolled_back_end != d.writes.begin();
  }

 private:
  template <class U>
  [[gnu::always_inline]] static U load_value(const U* address) noexcept {
    return std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
  }

  // Locks a record that had `version` and notes the word at `address`. returns false if the record has changed
  [[gnu::always_inline]] static bool lock(Descriptor& d, Orec& record, std::uint64_t version, Word* address,
                                          Word mask) noexcept {
    WriteEntry* const entry = d.write_end;
    fill(*entry, nullptr, address, 0, mask, record);
    if (!record.compare_exchange_strong(version, d.locked_word | reinterpret_cast<std::uintptr_t>(entry),
                                        std::memory_order_acq_rel,  // P1, P2, P3
                                        std::memory_order_relaxed)) [[unlikely]]
      return false;
    entry->value = load_whole(address);  // nobody else writes it now
    added(d);
    LOAM_POINT("tm.locked");
    return true;
  }

  template <bool kNested>
  [[gnu::noinline]] static void store_slow(Descriptor& d, Orec& record, Word* address, Word value, Word mask) noexcept {
    for (;;) {
      const std::uint64_t version = record.load(std::memory_order_acquire);
      if (is_locked_by(version, d.slot)) {
        WriteEntry& first = *first_entry(version);
        if (!is_noted(first, address, mask, kNested ? d.state<UndoLog>().newest_savepoint : d.writes.begin()))
          note(d, first, address, mask);
        return store_masked(address, value, mask);  // P2
      }
      if (is_locked(version)) {
        Base::meet(d, record, version, address);
      } else if (version > d.snapshot) {
        Base::extend(d);
      } else if (lock(d, record, version, address, mask)) {
        return store_masked(address, value, mask);  // P2
      }
    }
  }

  // A whole word of a stripe that this attempt has locked and written several words of.
  [[gnu::noinline]] static void store_chained(Descriptor& d, WriteEntry& first, Word* address, Word value) noexcept {
    if (!is_noted(first, address, ~Word{0}, d.writes.begin())) note(d, first, address, ~Word{0});
    std::atomic_ref<Word>(*address).store(value, std::memory_order_release);  // P2
  }

  // The version of this commit, after validating if need be.
  static std::uint64_t commit_version(Descriptor& d) noexcept {
    LOAM_POINT("tm.committing");
    const std::uint64_t before = version_clock.now.fetch_add(1, std::memory_order_acq_rel);  // P3, P4
    // Nobody has taken a version since the snapshot, so nothing read can have changed.
    if (before != d.snapshot) Base::validate(d);
    LOAM_POINT("tm.validated");
    return d.snapshot = before + 1;
  }

  // Releases every record, the newest entry first: a stripe's first entry, which releases it, comes last of its own.
  static void release(Descriptor& d, std::uint64_t version) noexcept {
    const WriteEntry* const begin = d.writes.begin();
    const WriteEntry* entry = d.write_end;
    d.write_end = d.writes.begin();
    do {
      --entry;
      LOAM_POINT("tm.written");
      if constexpr (kBlame) blame::note_write(shared.map.record(address_of(*entry)), address_of(*entry), version);
      entry->record->store(version, std::memory_order_release);  // P1
    } while (entry != begin);
  }

  // Ends the attempt because `record`, which was to guard `word` (nullptr: not kept), was `seen`; starts the next one.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                              const Word* word) noexcept {
    const AbortCause cause = Base::cause(d, record, seen, word);
    contention::lost(d, record, seen);
    rollback(d, cause);
    Base::renew(d);  // begin_update() keeps it: it would be that of the failed attempt
    lifecycle::restart(d, kRestart);
  }
};

}  // namespace loam::tm
