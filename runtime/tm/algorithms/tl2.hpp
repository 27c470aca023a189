// tl2: commit-time locking with a version clock.
//   Writes go to a redo log and lock nothing. A read is valid if its record is free and not newer than the snapshot,
//   which stays the one of the begin: a newer record aborts. A commit locks the records of the write set, takes a clock
//   value, validates unless that is the next one after the snapshot, writes back and releases.
//   Source      Dice, Shalev and Shavit, "Transactional Locking II", DISC 2006 (clock GV1).
//   Guarantees  opacity. Publication safe. Not privatization safe by itself: memory freed in a transaction waits for
//               quiescence (memory.hpp); other plain use after unlinking must wait as well. Privatization::commit
//               waits.
//   Conflicts   appear at commit: of two attempts that write one word, the later one to commit aborts. An attempt that
//               finds a record locked, in a commit or in a read, asks the contention manager. Locks are tried in the
//               order of the writes. The manager bounds every wait, so two commits that need each other's locks do not
//               block.
//   Cost        a read in an update tests a filter, and looks up the word if it may have been written. First write
//               of a word: an entry. Commit: one CAS per record, one fetch-add, a store per word and per record.
//   When not    long transactions that write: their conflicts appear last, after all the work. Transactions that read
//               what was committed after their begin: no snapshot is extended.
//   Differences to the paper: if a record was locked and released unchanged between the two looks of a read (by a
//   commit that failed), the read is tried again instead of aborting. And the write set may hold a record newer than
//   the snapshot if it was not read.
// Memory orders; in brackets the failure without the pair
//   P1 publish  record store(release) after the write-back / record load(acquire) before the data
//               [new version, old data]
//   P2 seqlock  data store(release) after the lock CAS / data load(acquire), then record load(relaxed) again
//               [new data under the old version]
//   P3 commits  lock CAS(acq_rel), clock fetch_add(acq_rel), then validation / the same in the other committer
//               [write skew: each validates before the other's lock is visible]
//   P4 now      the fetch_add's release / clock load(acquire) at begin
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
#include "runtime/tm/logs/redo_log.hpp"
#include "runtime/tm/records/mapped.hpp"

#include <atomic>

namespace loam::tm {

template <bool kBlame>
struct Tl2 : TimeBased<Tl2<kBlame>, kBlame> {
  static constexpr AlgorithmDescription kDescription{.name = "tl2",
                                                     .summary = "commit-time locking, redo log, no snapshot extension",
                                                     .paper = "TL2, DISC 2006",
                                                     .guarantees = "opacity; publication safe"};
  static constexpr bool kExtends = false;

 private:
  using Base = TimeBased<Tl2, kBlame>;
  friend Base;

 public:
  // Reads and writes. kNested: what it changes of older entries can be undone.
  template <bool kNested>
  class Writing : public Mapped, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Mapped::Mapped;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      if (redo(d).may_hold(word_of(address))) [[unlikely]]
        return load_written(d, record, address);
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (before > d.snapshot) [[unlikely]]
        return load_slow<true>(d, record, address);
      LOAM_POINT("tm.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        return load_slow<true>(d, record, address);
      log_read<kBlame>(d, record, word_of(address));
      return value;
    }

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      Descriptor& d = *this->d_;
      redo(d).template store<kNested>(d, address, value, mask, this->record_of(address));
    }
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  using Savepoint = RedoLog::Savepoint;

  static void attach(Descriptor& d) noexcept {
    State& state = d.make_state<State>();
    state.redo.attach(d);
    state.locked_end = d.writes.begin();
  }

  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    Base::renew(d);
    LOAM_POINT("tm.began");
    d.read_cursor = d.reads.begin();
    d.mode = Mode::update;
  }

  // Returns if the attempt has committed; otherwise the attempt restarts.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    if (d.write_end != d.writes.begin()) commit_writes<false>(d);
    lifecycle::committed(d);
  }

  // Undoes all effects of the attempt, and counts the cause of its abort.
  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    State& state = d.state<State>();
    // Only a commit that has failed holds locks. The old version may come back: memory was never touched, so a reader
    // that saw it before sees the same after.
    for (const WriteEntry* entry = d.writes.begin(); entry != state.locked_end; ++entry)
      entry->record->store(entry->old_version, std::memory_order_release);  // P1
    state.locked_end = d.writes.begin();
    state.redo.clear(d);
    lifecycle::aborted(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.special = true;  // its commit clears the history
    return redo(d).save(d);
  }
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept { redo(d).restore(d, savepoint); }

 private:
  struct State {
    RedoLog redo;
    // Behind the last entry whose record the attempt has locked; the first entry but between a failed commit and the
    // rollback that follows.
    WriteEntry* locked_end;
  };

  static RedoLog& redo(Descriptor& d) noexcept { return d.state<State>().redo; }

  // Read again if it was locked and released unchanged in between.
  template <class U>
  [[gnu::always_inline]] static U load_turned_down(Descriptor& d, Orec& record, std::uint64_t, const U* address) {
    return load_slow<false>(d, record, address);
  }

  // A word that the attempt may have written. Not a member function of the handle: that must not escape, or its fields
  // would leave their registers.
  template <class U>
  [[gnu::noinline]] static U load_written(Descriptor& d, Orec& record, const U* address) noexcept {
    return redo(d).read(d, address, [&] { return load_slow<true>(d, record, address); });
  }

  // The value of a word whose record was not free and old, or has changed.
  template <bool kLogged, class U>
  [[gnu::noinline]] static U load_slow(Descriptor& d, Orec& record, const U* address) noexcept {
    for (;;) {
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (is_locked(before)) {
        Base::meet(d, record, before, word_of(address));
        continue;
      }
      if (before > d.snapshot) conflict(d, record, before, word_of(address));
      LOAM_POINT("tm.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (record.load(std::memory_order_relaxed) != before) continue;
      if constexpr (kLogged) log_read<kBlame>(d, record, word_of(address));
      return value;
    }
  }

  // ---- commit -------------------------------------------------------------------------------------------------------

  template <bool kParts>
  static void commit_writes(Descriptor& d) noexcept {
    LOAM_POINT("tm.committing");
    for (WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry) lock(d, *entry);
    const std::uint64_t before = version_clock.now.fetch_add(1, std::memory_order_acq_rel);  // P3, P4
    // Nobody committed since the snapshot, so nothing read can have changed.
    if (before != d.snapshot) validate(d);
    LOAM_POINT("tm.validated");
    d.snapshot = before + 1;
    const WriteEntry* const end = d.write_end;
    write_back<kParts>(d, before + 1);
    waiting::notify(d, end);
  }

  // Locks an entry's record, unless an earlier entry has: then it joins the chain of that one. Whatever version the
  // record has: only reads through it must be old, and validation looks after them.
  [[gnu::always_inline]] static void lock(Descriptor& d, WriteEntry& entry) noexcept {
    Orec& record = *entry.record;
    for (;;) {
      std::uint64_t version = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (is_locked(version)) [[unlikely]] {
        if (is_locked_by(version, d.slot)) return join(d, *first_entry(version), entry);
        meet_in_commit(d, entry, version);
        continue;
      }
      entry.old_version = version;
      if (record.compare_exchange_strong(version, d.locked_word | reinterpret_cast<std::uintptr_t>(&entry),
                                         std::memory_order_acq_rel,  // P2, P3
                                         std::memory_order_relaxed)) [[likely]] {
        LOAM_POINT("tm.locked");
        return;
      }
    }
  }

  // The first entry of a record releases it; this one, at commit and at abort, releases a dummy word.
  static void join(Descriptor& d, WriteEntry& first, WriteEntry& entry) noexcept {
    entry.record = &d.no_record;
    // relaxed: a hint to threads that find the lock
    entry.next.store(first.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
    first.next.store(&entry, std::memory_order_relaxed);
  }

  // Aborts unless every record of the read set is at most as new as the snapshot, or locked by this attempt and was at
  // that time.
  static void validate(Descriptor& d) noexcept {
    for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry) {
      const std::uint64_t now = (*entry)->load(std::memory_order_acquire);  // P3
      if (now <= d.snapshot) [[likely]]
        continue;
      std::uint64_t seen = now;
      if (is_locked_by(now, d.slot)) {
        seen = first_entry(now)->old_version;
        if (seen <= d.snapshot) continue;
      }
      d.state<State>().locked_end = d.write_end;
      conflict(d, **entry, seen, Base::word_read(d, entry));
    }
  }

  // From the newest entry to the oldest: the one that holds a record's lock comes last of those on it. Stripes that are
  // not written yet are still locked, so a reader that has seen a new value and needs another one finds a lock.
  // kParts: some words are written in part.
  template <bool kParts>
  static void write_back(Descriptor& d, std::uint64_t version) noexcept {
    for (const WriteEntry* entry = d.write_end; entry != d.writes.begin();) {
      --entry;
      write_word_back<kParts>(*entry);
      LOAM_POINT("tm.written");
      if constexpr (kBlame) blame::note_write(shared.map.record(address_of(*entry)), address_of(*entry), version);
      entry->record->store(version, std::memory_order_release);  // P1
    }
    redo(d).clear(d);
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    if (d.write_end != d.writes.begin()) commit_writes<true>(d);
    lifecycle::committed_special(d, d.snapshot);
  }

  // ---- conflicts ----------------------------------------------------------------------------------------------------

  // The record of `entry` was seen locked by another in commit, with the records of the entries before `entry` locked.
  [[gnu::noinline, gnu::cold]] static void meet_in_commit(Descriptor& d, WriteEntry& entry,
                                                          std::uint64_t seen) noexcept {
    d.state<State>().locked_end = &entry;
    Base::meet(d, *entry.record, seen, address_of(entry));
    d.state<State>().locked_end = d.writes.begin();
  }

  // Ends the attempt because `record`, which was to guard `word` (nullptr: not kept), was `seen`; starts the next one.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                              const Word* word) noexcept {
    const AbortCause cause = Base::cause(d, record, seen, word);
    contention::lost(d, record, seen);
    rollback(d, cause);
    lifecycle::restart(d, kRestart);
  }
};

}  // namespace loam::tm
