// etl-wb: encounter-time locking with write-back, time-based reads.
//   A write locks the ownership record of its stripe at once and keeps the value in a redo log. A read is valid if its
//   record is free and not newer than the snapshot. A newer record extends the snapshot, after everything read so far
//   has been validated. A commit takes a clock value, validates unless that is the next one after the snapshot, writes
//   back and releases.
//   Source      TinySTM, PPoPP 2008 (WB-ETL); time base: LSA, DISC 2006, and TL2, DISC 2006.
//   Guarantees  opacity. Publication safe. Not privatization safe by itself: memory freed in a transaction waits for
//               quiescence (memory.hpp); other plain use after unlinking must wait as well. Privatization::commit
//               waits.
//   Conflicts   An attempt that finds a record locked asks the contention manager. One that fails to validate aborts.
//   Cost        read-only: 9 instructions a read, no log; update: 15; first write of a stripe: one CAS; commit: one
//               fetch-add and a store per word and per stripe (docs/instruction-counts.md).
//   When not    many threads on few records, which are held from the first write to the commit.
// Memory orders; in brackets the failure without the pair
//   P1 publish  record store(release) after the write-back / record load(acquire) before the data
//               [new version, old data]
//   P2 seqlock  data store(release) after the lock CAS / data load(acquire), then record load(relaxed) again
//               [new data under the old version]
//   P3 commits  lock CAS(acq_rel), clock fetch_add(acq_rel), then validation / the same in the other committer
//               [write skew: each validates before the other's lock is visible]; another clock: dctl.hpp
//   P4 now      the fetch_add's release / clock load(acquire) or fetch_add(acq_rel), in extend() before validating
//               [snapshot newer than what is visible]
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
#include "runtime/tm/logs/write_set.hpp"
#include "runtime/tm/records/mapped.hpp"

#include <atomic>

namespace loam::tm {

// How commits get their versions. Here: every commit advances the clock, so versions are unique.
struct CountingClock {
  static constexpr bool kUnique = true;  // a version is given to one commit only
  // Of lock CASes and of the loads that validate; the fetch_add between them orders the two.
  static constexpr auto kLock = std::memory_order_acq_rel, kValidate = std::memory_order_acquire;  // P3

  // The clock before a commit whose version is the value after this one.
  static std::uint64_t take() noexcept {
    return version_clock.now.fetch_add(1, std::memory_order_acq_rel);  // P3, P4
  }
  // Raises the clock to `version`, the version of a commit. Here the commit itself has advanced the clock.
  static void reach(std::uint64_t) noexcept {}
};

// kBlame: as in algorithm.hpp.  ClockOf: a policy as CountingClock.  Handle: Mapped or HashMapped (mapped.hpp)
template <bool kBlame, class ClockOf, class Handle = Mapped>
struct EtlWbWith : TimeBased<EtlWbWith<kBlame, ClockOf, Handle>, kBlame, Handle, ClockOf::kValidate> {
 private:
  using Base = TimeBased<EtlWbWith, kBlame, Handle, ClockOf::kValidate>;
  friend Base;

 public:
  // Reads and writes. kNested: what it changes of older entries can be undone.
  template <bool kNested>
  class Writing : public Handle, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Handle::Handle;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      const std::uint64_t before = record.load(ClockOf::kValidate);  // P1
      if (before > d.snapshot) [[unlikely]] {
        const WriteEntry* const own = own_entry(d, before);
        if (own < d.write_end && holds(*own, word_of(address)))
          return static_cast<U>(own->value >> bit_in_word(address));
        return load_slow(d, record, address);
      }
      LOAM_POINT("tm.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        return load_slow(d, record, address);
      log_read<kBlame>(d, record, word_of(address));
      return value;
    }

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      if constexpr (kNested) return store_slow<true>(d, record, address, value, mask);
      std::uint64_t version = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (mask != ~Word{0}) return store_slow<false>(d, record, address, value, mask);
      if (version <= d.snapshot) [[likely]] {
        // A version up to the snapshot also covers this attempt's own earlier reads of the stripe: nothing was
        // committed to it since (the upgrade rule).
        if (lock(d, record, version, address, value, mask)) [[likely]]
          return;
      } else if (WriteEntry* const own = own_entry(d, version); own < d.write_end) {
        if (!holds(*own, address)) {
          if (own->next.load(std::memory_order_relaxed) != nullptr)  // relaxed: own chain
            return store_chained<false>(d, *own, address, value, mask);
          return append(d, *own, nullptr, address, value, mask);
        }
        own->value = value;
        own->mask = ~Word{0};
        return;
      }
      store_slow<false>(d, record, address, value, mask);
    }

   private:
    // Not a member function of the object: the object must not escape, or its fields would leave their registers.
    template <class U>
    [[gnu::noinline]] static U load_slow(Descriptor& d, Orec& record, const U* address) {
      return static_cast<U>(load_word_slow(d, record, word_of(address)) >> bit_in_word(address));
    }
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  struct Savepoint {
    WriteEntry* write_end;
    std::size_t history;
    std::size_t reads;
  };

  static void attach(Descriptor& d) noexcept { d.make_state<WriteHistory>().reserve(); }

  // Returns if the attempt has committed; otherwise the attempt restarts.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    WriteEntry* const begin = d.writes.begin();
    if (WriteEntry* const end = d.write_end; end != begin) write_back<false>(d, begin, end, commit_version(d));
    lifecycle::committed(d);
  }

  // Undoes all effects of the attempt, and counts the cause of its abort.
  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    // The old version may come back: memory was never touched, so a reader that saw it before sees the same after.
    for (const WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry) {
      // Reads of other words of the stripe, and of the rest of partly written words, happened under the lock and are in
      // no log. A retry() waits for a change of these, too.
      if (cause == AbortCause::explicit_ && entry->record != &d.no_record)
        log_read<kBlame>(d, *entry->record, address_of(*entry));
      entry->record->store(entry->old_version, std::memory_order_release);  // P1
    }
    d.write_end = d.writes.begin();
    d.state<WriteHistory>().clear();
    lifecycle::aborted(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.special = true;  // its commit clears the history
    return {d.write_end, d.state<WriteHistory>().size(), static_cast<std::size_t>(d.read_cursor - d.reads.begin())};
  }

  // Frees the stripes that were locked since the savepoint. For each, the read set gets an entry: the stripe must not
  // have changed since it was locked.
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    d.state<WriteHistory>().undo_to(savepoint.history);
    for (const WriteEntry* entry = savepoint.write_end; entry != d.write_end; ++entry) {
      if (entry->record == &d.no_record) continue;
      log_read<kBlame>(d, *entry->record, address_of(*entry));
      entry->record->store(entry->old_version, std::memory_order_release);  // P1
    }
    d.write_end = savepoint.write_end;
  }

  // After restore(): if all reads before the part are still valid, only the part runs again.
  static void resume(Descriptor& d, const Savepoint& savepoint) noexcept {
    d.read_cursor = d.reads.begin() + savepoint.reads;
    extend(d, d.snapshot);
  }

  // A word whose record this attempt has locked is not in the read set by its own reads since: nothing to drop.
  static void release_read(Descriptor& d, const Word* word) noexcept {
    const Orec& record = shared.map.record(word);
    if (!is_locked_by(record.load(std::memory_order_relaxed), d.slot)) forget_read(d, record);  // relaxed: own lock
  }

 private:
  // Locks a record that had `version` and makes `address` its first entry. returns false if the record has changed
  [[gnu::always_inline]] static bool lock(Descriptor& d, Orec& record, std::uint64_t version, Word* address, Word value,
                                          Word mask) noexcept {
    WriteEntry* const entry = d.write_end;
    fill(*entry, nullptr, address, value, mask, record);
    entry->old_version = version;
    if (!record.compare_exchange_strong(version, d.locked_word | reinterpret_cast<std::uintptr_t>(entry),
                                        ClockOf::kLock,  // P2, P3
                                        std::memory_order_relaxed)) [[unlikely]]
      return false;
    LOAM_POINT("tm.locked");
    added(d);
    return true;
  }

  // The value of a word whose record is not free and old: locked by this attempt, locked by another, or too new.
  [[gnu::noinline]] static Word load_word_slow(Descriptor& d, Orec& record, Word* word) noexcept {
    for (;;) {
      const std::uint64_t before = record.load(ClockOf::kValidate);  // P1
      if (is_locked_by(before, d.slot)) {
        const WriteEntry* const entry = find(first_entry(before), word);
        return entry != nullptr ? entry->value : load_whole(word);
      }
      if (is_locked(before)) {
        Base::meet(d, record, before, word);
        continue;
      }
      if (before > d.snapshot) extend(d, before);
      LOAM_POINT("tm.reading");
      const Word value = load_whole(word);  // P2
      // The record is not in the read set yet, so its version is compared once more, even after an extension.
      if (record.load(std::memory_order_relaxed) == before && before <= d.snapshot) {
        log_read<kBlame>(d, record, word);
        return value;
      }
    }
  }

  template <bool kNested>
  [[gnu::noinline]] static void store_slow(Descriptor& d, Orec& record, Word* address, Word value, Word mask) noexcept {
    for (;;) {
      std::uint64_t version = record.load(std::memory_order_acquire);
      if (is_locked_by(version, d.slot)) {
        WriteEntry& first = *first_entry(version);
        if (!holds(first, address)) return store_chained<kNested>(d, first, address, value, mask);
        if constexpr (kNested) d.state<WriteHistory>().note(first);
        return merge(d, first, value, mask);
      }
      if (is_locked(version)) {
        Base::meet(d, record, version, address);
        continue;
      }
      if (version > d.snapshot) {
        extend(d, version);
        continue;
      }
      if (lock(d, record, version, address, value, mask)) {
        if (mask != ~Word{0}) complete(d, d.write_end[-1]);
        return;
      }
    }
  }

  // A word of a stripe that this attempt has locked, but not the one of its first entry; perhaps written before.
  template <bool kNested>
  [[gnu::noinline]] static void store_chained(Descriptor& d, WriteEntry& first, Word* address, Word value,
                                              Word mask) noexcept {
    WriteEntry* const chain = first.next.load(std::memory_order_relaxed);  // relaxed: own chain
    WriteEntry* const known = find(chain, address);
    if constexpr (kNested) d.state<WriteHistory>().note(known != nullptr ? *known : first);
    if (known != nullptr) return merge(d, *known, value, mask);
    append(d, first, chain, address, value, mask);
  }

  // Moves the snapshot to now, `version` at least, if everything read is still as it was.
  static void extend(Descriptor& d, std::uint64_t version) noexcept {
    ClockOf::reach(version);
    Base::extend(d);
  }

  // The version of this commit, after validating if need be.
  static std::uint64_t commit_version(Descriptor& d) noexcept {
    LOAM_POINT("tm.committing");
    const std::uint64_t before = ClockOf::take();
    // Where versions are unique and none was given since the snapshot, nothing read can have changed.
    if (!ClockOf::kUnique || before != d.snapshot) Base::validate(d);
    LOAM_POINT("tm.validated");
    d.snapshot = ClockOf::kUnique ? before + 1 : before;
    return before + 1;
  }

  // From the newest entry to the oldest, so a stripe's first entry comes last and releases it. Stripes that are not
  // written yet are still locked, so a reader that has seen one of the new values and needs another finds a lock.
  // kParts: some words are written in part.
  template <bool kParts>
  static void write_back(Descriptor& d, WriteEntry* begin, const WriteEntry* end, std::uint64_t version) noexcept {
    d.write_end = begin;
    const WriteEntry* entry = end;
    do {
      --entry;
      write_word_back<kParts>(*entry);
      LOAM_POINT("tm.written");
      if constexpr (kBlame) blame::note_write(shared.map.record(address_of(*entry)), address_of(*entry), version);
      entry->record->store(version, std::memory_order_release);  // P1
    } while (entry != begin);
    waiting::notify(d, end);
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    [[maybe_unused]] const bool wrote = d.write_end != d.writes.begin();
    if (wrote) write_back<true>(d, d.writes.begin(), d.write_end, commit_version(d));
    d.state<WriteHistory>().clear();
    if constexpr (!ClockOf::kUnique) {
      if (wrote) {
        const std::uint64_t version = d.snapshot + 1;
        // A commit that waits for older attempts by itself first moves the clock to its version, so that new attempts
        // are younger.
        if (d.published.load(std::memory_order_relaxed) != 0) ClockOf::reach(d.snapshot = version);  // relaxed: own
        return lifecycle::committed_special(d, version);
      }
    }
    lifecycle::committed_special(d, d.snapshot);
  }

  // Ends the attempt because `record`, which was to guard `word` (nullptr: not kept), was `seen`; starts the next one.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                              const Word* word) noexcept {
    if (!is_locked(seen)) ClockOf::reach(seen);  // the next attempt's snapshot covers it
    const AbortCause cause = Base::cause(d, record, seen, word);
    contention::lost(d, record, seen);
    if (lifecycle::restarts_part(d)) platform::restart(d, kRestart);
    rollback(d, cause);
    Base::renew(d);  // begin_update() keeps it: it would be that of the failed attempt
    lifecycle::restart(d, kRestart);
  }
};

template <bool kBlame>
struct EtlWb : EtlWbWith<kBlame, CountingClock> {
  static constexpr AlgorithmDescription kDescription{
      .name = "etl-wb",
      .summary = "encounter-time locking, write-back, timestamp extension",
      .paper = "TinySTM, PPoPP 2008",
      .guarantees = "opacity; publication safe"};
};

}  // namespace loam::tm
