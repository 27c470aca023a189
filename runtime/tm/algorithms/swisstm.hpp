// swisstm: write/write conflicts at the first write, read/write conflicts at commit; a two-phase contention manager.
//   A stripe has two words. The write lock (stripes.hpp) is taken at the first write, so two writers meet at once. The
//   ownership record, which readers check, is locked only during the commit, so readers continue until then. Values are
//   kept in a redo log. Reads are time-based and extend their snapshot (parts/time_based.hpp).
//   Source      SwissTM: Dragojevic, Guerraoui and Kapalka, PLDI 2009.
//   Guarantees  opacity. Publication safe. Not privatization safe by itself, as etl-wb.
//   Conflicts   Two writers: the manager is built in (parts/greedy.hpp); Config::manager is not asked. An attempt that
//               meets a record in a commit waits for the end of that commit.
//   Cost        a read as in etl-wb, and a test whether the attempt may have written the stripe. First write of a
//               stripe: one CAS and a second line. Commit: a fetch-add, and two stores per stripe more than etl-wb.
//   When not    short transactions: for them the second word of each written stripe has no benefit.
// Memory orders; in brackets the failure without the pair
//   P1 publish  record store(release) after the write-back / record load(acquire) before the data
//               [new version, old data]
//   P2 seqlock  data store(release) after the record was locked / data load(acquire), then record load(relaxed) again
//               [new data under the old version]
//   P3 commits  records locked, clock fetch_add(acq_rel), then validation / the same in the other committer
//               [write skew: each validates before the other's lock is visible]
//   P4 now      the fetch_add's release / clock load(acquire) or fetch_add(acq_rel), in extend() before validating
//               [snapshot newer than what is visible]
//   S1 handover write lock store(release) of 0 after the record's release / write lock CAS(acq_rel), then record load
//               [the next owner takes an old version for the stripe's last: lost update]
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/algorithms/parts/greedy.hpp"
#include "runtime/tm/algorithms/parts/time_based.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/cause.hpp"
#include "runtime/tm/logs/write_set.hpp"
#include "runtime/tm/records/mapped.hpp"
#include "runtime/tm/records/stripes.hpp"

#include <atomic>

namespace loam::tm {

template <bool kBlame>
struct Swisstm : TimeBased<Swisstm<kBlame>, kBlame> {
  static constexpr AlgorithmDescription kDescription{
      .name = "swisstm",
      .summary =
          "write/write conflicts at once, read/write at commit; two-phase manager built in (manager: backoff's "
          "pauses alone apply)",
      .paper = "SwissTM, PLDI 2009",
      .guarantees = "opacity; publication safe"};

 private:
  using Base = TimeBased<Swisstm, kBlame>;
  friend Base;

  struct State {
    std::uint64_t written = 0;  // a bit for each stripe with a write lock, modulo 64
    Greedy manager;
    WriteHistory history;
    bool records_locked = false;
  };

 public:
  // Reads and writes. kNested: what it changes of older entries can be undone.
  template <bool kNested>
  class Writing : public Mapped, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Mapped::Mapped;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Descriptor& d = *this->d_;
      const std::uint64_t stripe = this->index_of(address);
      Orec& record = this->base_[stripe];
      if ((d.state<State>().written >> (stripe % 64)) & 1)
        if (const WriteEntry* const own = own_write(d, stripe, word_of(address)); own != nullptr)
          return static_cast<U>(own->value >> bit_in_word(address));
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (before > d.snapshot) [[unlikely]]
        return load_slow(d, record, address);
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
      if (mask != ~Word{0}) return store_slow<false>(d, record, address, value, mask);
      Orec& lock = write_lock_of(record);
      const std::uint64_t seen = lock.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (WriteEntry* const own = own_entry(d, seen); own < d.write_end) {
        if (holds(*own, address)) {
          own->value = value;
          own->mask = ~Word{0};
          return;
        }
      } else if (seen == 0 && acquire(d, lock, record, address, value, mask)) [[likely]] {
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
  };

  static Greedy& manager(Descriptor& d) noexcept { return d.state<State>().manager; }

  // Behind touch_records(), to the same end.
  static void touch_stripes() noexcept {
    stripes::make_write_locks();
    stripes::write_locks.touch();
  }

  static void attach(Descriptor& d) noexcept {
    stripes::make_write_locks();
    State& state = d.make_state<State>();
    state.history.reserve();
    manager(d).attach(d);
  }

  // With the snapshot that the thread has, as etl-wb: what turns out to be newer extends.
  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    LOAM_POINT("tm.began");
    State& state = d.state<State>();
    state.written = 0;
    manager(d).begin();
    d.read_cursor = d.reads.begin();
    d.mode = Mode::update;
  }

  // Returns if the attempt has committed; otherwise the attempt restarts.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    if (d.write_end != d.writes.begin()) write_back<false>(d, commit_version(d));
    lifecycle::committed(d);
  }

  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    undo(d, cause);
    manager(d).be_timid(d);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.special = true;  // its commit clears the history
    return {d.write_end, d.state<State>().history.size()};
  }

  // Frees the stripes that were locked since the savepoint. For each, the read set gets an entry: the stripe must not
  // have changed since it was locked.
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    d.state<State>().history.undo_to(savepoint.history);
    for (const WriteEntry* entry = d.write_end; entry != savepoint.write_end;) {
      --entry;
      if (entry->record == &d.no_record) continue;
      log_read<kBlame>(d, *entry->record, address_of(*entry));
      release_write_lock(d, *entry);
    }
    d.write_end = savepoint.write_end;
  }

 private:
  // ---- write locks

  static Orec& write_lock_of(const Orec& record) noexcept {
    return stripes::write_locks.of(static_cast<std::uint64_t>(&record - shared.map.base));
  }

  // This attempt's value of `word`, or nullptr if it has written none.
  static const WriteEntry* own_write(Descriptor& d, std::uint64_t stripe, const Word* word) noexcept {
    // relaxed: what counts is whether it is this attempt's own
    WriteEntry* const first = own_entry(d, stripes::write_locks.of(stripe).load(std::memory_order_relaxed));
    return first < d.write_end ? find(first, word) : nullptr;
  }

  // Takes a free write lock and makes `address` its first entry. returns false if another attempt has taken it
  [[gnu::always_inline]] static bool acquire(Descriptor& d, Orec& lock, Orec& record, Word* address, Word value,
                                             Word mask) noexcept {
    State& state = d.state<State>();
    WriteEntry* const entry = d.write_end;
    fill(*entry, nullptr, address, value, mask, record);
    std::uint64_t free = 0;
    if (!lock.compare_exchange_strong(free, d.locked_word | reinterpret_cast<std::uintptr_t>(entry),
                                      std::memory_order_acq_rel,  // S1
                                      std::memory_order_relaxed)) [[unlikely]]
      return false;
    added(d);
    state.written |= std::uint64_t{1} << (static_cast<std::uint64_t>(&record - shared.map.base) % 64);
    guard(d, *entry, record);
    manager(d).locked(d);
    heed(d);
    LOAM_POINT("tm.locked");
    return true;
  }

  // From now on no other thread can change the stripe. If its version is not newer than the snapshot, this attempt's
  // earlier reads of the stripe are valid, too: nothing was committed to it since (the upgrade rule).
  [[gnu::always_inline]] static void guard(Descriptor& d, WriteEntry& entry, Orec& record) noexcept {
    entry.old_version = record.load(std::memory_order_acquire);  // S1
    if (entry.old_version > d.snapshot) [[unlikely]]
      Base::extend(d);
  }

  // Releases the write lock if `entry` is the first under it. Called from the newest entry to the oldest, so whatever
  // else the lock guards is released by then.
  static void release_write_lock(const Descriptor& d, const WriteEntry& entry) noexcept {
    Orec& lock = write_lock_of(*entry.record);
    if (lock.load(std::memory_order_relaxed) == (d.locked_word | reinterpret_cast<std::uintptr_t>(&entry)))
      lock.store(0, std::memory_order_release);  // S1
  }

  template <bool kNested>
  [[gnu::noinline]] static void store_slow(Descriptor& d, Orec& record, Word* address, Word value, Word mask) noexcept {
    Orec& lock = write_lock_of(record);
    for (;;) {
      const std::uint64_t seen =
          lock.load(std::memory_order_acquire);  // pairs with the owner's CAS: meet() looks at its entry
      if (is_locked_by(seen, d.slot)) return store_owned<kNested>(d, *first_entry(seen), record, address, value, mask);
      if (seen != 0) {
        meet(d, lock, record, seen, address);
        continue;
      }
      if (acquire(d, lock, record, address, value, mask)) {
        if (mask != ~Word{0}) complete(d, d.write_end[-1]);
        return;
      }
    }
  }

  // A word under a write lock that this attempt has; perhaps written before.
  template <bool kNested>
  static void store_owned(Descriptor& d, WriteEntry& first, Orec& record, Word* address, Word value,
                          Word mask) noexcept {
    WriteEntry* const known = find(&first, address);
    if constexpr (kNested) d.state<State>().history.note(known != nullptr ? *known : first);
    if (known != nullptr) return merge(d, *known, value, mask);
    append(d, first, first.next.load(std::memory_order_relaxed), address, value, mask);  // relaxed: own chain
    if (&record == first.record) return;
    // Another stripe that shares the lock: a record of its own to check, to lock and to release.
    WriteEntry& entry = d.write_end[-1];
    entry.record = &record;
    guard(d, entry, record);
  }

  // ---- the contention manager

  // Aborts if an earlier ticket has asked for it.
  [[gnu::always_inline]] static void heed(Descriptor& d) noexcept {
    const Greedy& own = manager(d);
    if (own.is_asked_to_abort()) [[unlikely]]
      give_up(d, own.asked_with());
  }

  // The write lock of `record`, which guards `word`, was seen taken by another. Returns once that has changed.
  [[gnu::noinline, gnu::cold]] static void meet(Descriptor& d, const Orec& lock, const Orec& record, std::uint64_t seen,
                                                const Word* word) noexcept {
    Greedy& owner = manager(*Descriptor::of_slot(owner_of(seen)));
    const AbortCause cause = cause_of<kBlame>(d, record, seen, word);
    if (const auto lost = manager(d).wait_for(owner, lock, seen, cause)) give_up(d, *lost);
  }

  // ---- validation

  // The value of a word that this attempt has not written and whose record is not old: too new, or in a commit.
  [[gnu::noinline]] static Word load_word_slow(Descriptor& d, Orec& record, Word* word) noexcept {
    sync::Backoff backoff;
    for (unsigned round = 0;;) {
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (is_locked(before)) {
        if (round++ == Greedy::kRoundsMax) conflict(d, record, before, word);
        heed(d);
        LOAM_POINT("tm.waiting");
        backoff.wait();
        continue;
      }
      if (before > d.snapshot) Base::extend(d);
      LOAM_POINT("tm.reading");
      const Word value = load_whole(word);  // P2
      // The record is not in the read set yet, so its version is compared once more, even after an extension.
      if (record.load(std::memory_order_relaxed) == before && before <= d.snapshot) {
        log_read<kBlame>(d, record, word);
        return value;
      }
    }
  }

  // ---- ends

  // Locks the records for readers. returns the version of this commit, after validating if need be
  static std::uint64_t commit_version(Descriptor& d) noexcept {
    heed(d);
    LOAM_POINT("tm.committing");
    State& state = d.state<State>();
    state.records_locked = true;
    for (const WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry)
      // relaxed: the fetch_add (P3) and the release of the data (P2) come after
      entry->record->store(d.locked_word | reinterpret_cast<std::uintptr_t>(entry), std::memory_order_relaxed);
    const std::uint64_t before = version_clock.now.fetch_add(1, std::memory_order_acq_rel);  // P3, P4
    // Nobody committed since the snapshot, so nothing read can have changed.
    if (before != d.snapshot) Base::validate(d);
    LOAM_POINT("tm.validated");
    state.records_locked = false;
    return d.snapshot = before + 1;
  }

  // kParts: some words are written in part.
  template <bool kParts>
  static void write_back(Descriptor& d, std::uint64_t version) noexcept {
    const WriteEntry* const begin = d.writes.begin();
    const WriteEntry* const end = d.write_end;
    for (const WriteEntry* entry = begin; entry != end; ++entry) {
      write_word_back<kParts>(*entry);
      if constexpr (kBlame) blame::note_write(shared.map.record(address_of(*entry)), address_of(*entry), version);
    }
    LOAM_POINT("tm.written");
    for (const WriteEntry* entry = end; entry != begin;) {
      --entry;
      if (entry->record == &d.no_record) continue;
      entry->record->store(version, std::memory_order_release);  // P1
      release_write_lock(d, *entry);
    }
    d.write_end = d.writes.begin();
    manager(d).committed(d);
    waiting::notify(d, end);
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    if (d.write_end != d.writes.begin()) write_back<true>(d, commit_version(d));
    d.state<State>().history.clear();
    lifecycle::committed_special(d, d.snapshot);
  }

  // Undoes all effects of the attempt and counts the cause. The ticket stays.
  static void undo(Descriptor& d, AbortCause cause) noexcept {
    State& state = d.state<State>();
    for (const WriteEntry* entry = d.write_end; entry != d.writes.begin();) {
      --entry;
      if (entry->record == &d.no_record) continue;
      // The rest of a word written in part was read under the lock, without a trace: who waits, waits for it as well.
      if (cause == AbortCause::explicit_) log_read<kBlame>(d, *entry->record, address_of(*entry));
      // The old version may come back: memory was never touched.
      if (state.records_locked) entry->record->store(entry->old_version, std::memory_order_release);  // P1
      release_write_lock(d, *entry);
    }
    state.records_locked = false;
    d.write_end = d.writes.begin();
    state.history.clear();
    lifecycle::aborted(d, cause);
  }

  // Ends the attempt because `record`, which was to guard `word` (nullptr: not kept), was `seen`.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                              const Word* word) noexcept {
    give_up(d, Base::cause(d, record, seen, word));
  }

  // Ends the attempt and starts the next one after a pause, linear in the failures so far. The ticket stays: it was
  // drawn for the transaction.
  [[noreturn, gnu::noinline, gnu::cold]] static void give_up(Descriptor& d, AbortCause cause) noexcept {
    undo(d, cause);
    Base::renew(d);  // begin_update() keeps it: it would be that of the failed attempt
    manager(d).pause(d);
    lifecycle::restart(d, kRestart);
  }
};

}  // namespace loam::tm
