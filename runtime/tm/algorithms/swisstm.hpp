// swisstm: write/write conflicts at the first write, read/write conflicts at commit; a two-phase contention manager.
//   A stripe has two words. Its write lock (stripes.hpp) is taken at the first write, so that two writers meet at once;
//   its ownership record, which readers look at, is locked for the time of the commit alone, so that readers go on
//   until then. Values wait in a redo log; reads are time-based and extend their snapshot.
//   Source      SwissTM: Dragojevic, Guerraoui and Kapalka, PLDI 2009; Greedy: Guerraoui, Herlihy and Pochon, PODC
//               2005.
//   Guarantees  opacity. Publication safe. Not privatization safe by itself, as etl-wb.
//   Conflicts   built in, Config::manager is not asked where two writers meet: an attempt of fewer than kTimidWrites
//               writes that finds a write lock taken aborts (most are short, and this costs nothing to decide). One
//               that reaches that number draws a ticket; of two, the earlier ticket wins: it asks the owner to abort,
//               which that one notices at its next lock or wait, and waits for the lock, though not for ever. Each
//               failure in a row lengthens a random pause. Who meets a record in a commit waits for the commit's end.
//   Cost        a read as etl-wb's, and a test whether the attempt may have written the stripe; first write of a
//               stripe: one CAS and a second line; commit: a fetch-add, two stores per stripe more than etl-wb.
//   When not    short transactions: two words per written stripe buy nothing there.
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
#include "runtime/base/random.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/blame.hpp"
#include "runtime/tm/cause.hpp"
#include "runtime/tm/lifecycle.hpp"
#include "runtime/tm/mapped.hpp"
#include "runtime/tm/stripes.hpp"
#include "runtime/tm/write_set.hpp"

#include <algorithm>
#include <atomic>

namespace loam::tm {

namespace swiss {

inline constexpr std::uint64_t kNoTicket = ~0ULL;
inline constexpr std::ptrdiff_t kTimidWrites = 10;
// How often a Greedy attempt looks at the lock that it waits for, and anyone at a record in a commit.
inline constexpr unsigned kRoundsMax = 2000;
// Pauses after a failure: at random below this for each failure in a row.
inline constexpr unsigned kPausesPerFailure = 64, kFailuresCounted = 64;

inline constinit std::atomic<std::uint64_t> tickets{0};

struct State {
  std::uint64_t written = 0;        // a bit for each stripe with a write lock, modulo 64
  WriteEntry* greedy_at = nullptr;  // where the write set ends when the ticket is drawn; beyond all once it is
  WriteHistory history;
  bool records_locked = false;
  unsigned failures = 0;           // in a row,
  std::uint64_t failed_after = 0;  // while the thread has committed this often
  base::Random random{0};

  // Others use these, on conflicts only. relaxed throughout: requests and hints, which release nothing by themselves.
  std::atomic<std::uint64_t> attempt{0};
  std::atomic<std::uint64_t> ticket{kNoTicket};
  std::atomic<std::uint64_t> killed{0};  // an attempt that others ask to abort, times 8, and the cause
};
static_assert(kAbortCauses <= 8);

}  // namespace swiss

template <bool kBlame>
struct SwissTm {
  static constexpr AlgorithmDescription kDescription{
      .name = "swisstm",
      .summary =
          "write/write conflicts at once, read/write at commit; two-phase manager built in (manager: backoff's "
          "pauses alone apply)",
      .paper = "SwissTM, PLDI 2009",
      .guarantees = "opacity; publication safe"};

 private:
  using State = swiss::State;

 public:
  // Reads only, keeps no log: a record newer than the snapshot means a new attempt.
  class ReadOnlyTx : public Mapped, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Mapped::Mapped;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Orec& record = this->record_of(address);
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (before > this->d_->snapshot) [[unlikely]]
        conflict(*this->d_, record, before, word_of(address));
      LOAM_POINT("tm.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        conflict(*this->d_, record, record.load(std::memory_order_acquire), word_of(address));
      return value;
    }
  };

  // Reads and writes. kNested: what it changes of older entries can be taken back.
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

  static void attach(Descriptor& d) noexcept {
    stripes::make_write_locks();
    State& state = d.make_state<State>();
    state.history.reserve();
    state.random = base::Random(1, d.slot);
    be_timid(d);
  }

  static void begin_read_only(Descriptor& d) noexcept {
    lifecycle::enter<false>(d);
    d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4
    LOAM_POINT("tm.began");
    d.mode = Mode::read_only;
  }

  // With the snapshot that the thread has, as etl-wb: what turns out to be newer extends.
  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    LOAM_POINT("tm.began");
    State& state = d.state<State>();
    state.written = 0;
    state.attempt.store(state.attempt.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    d.read_cursor = d.reads.begin();
    d.mode = Mode::update;
  }

  static void commit_read_only(Descriptor& d) noexcept {
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, d.snapshot);
    lifecycle::committed(d);
  }

  // Returns if the attempt has committed; restarts it otherwise.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    if (d.write_end != d.writes.begin()) write_back<false>(d, commit_version(d));
    lifecycle::committed(d);
  }

  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    undo(d, cause);
    be_timid(d);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.special = true;  // its commit clears the history
    return {d.write_end, d.state<State>().history.size()};
  }

  // Stripes locked since are free again; that they were still old when they were locked is kept as a read.
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

  // After rollback().
  static bool has_read(Descriptor& d) noexcept { return d.read_cursor != d.reads.begin(); }

  static bool unchanged(Descriptor& d) noexcept { return read_set_unchanged(d, d.snapshot); }
  template <class F>
  static void waits_for(Descriptor& d, F&& f) noexcept {
    for_each_read(d, f);
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

  // Takes a free write lock and makes `address` its first entry. returns false if another one was faster
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
    if (d.write_end >= state.greedy_at) [[unlikely]]
      be_greedy(d);
    heed(d);
    LOAM_POINT("tm.locked");
    return true;
  }

  // Nobody else can change the stripe from now on. That its version is up to the snapshot also covers what this attempt
  // has read of it: nothing was committed to it since (the upgrade rule).
  [[gnu::always_inline]] static void guard(Descriptor& d, WriteEntry& entry, Orec& record) noexcept {
    entry.old_version = record.load(std::memory_order_acquire);  // S1
    if (entry.old_version > d.snapshot) [[unlikely]]
      extend(d);
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

  static void be_timid(Descriptor& d) noexcept {
    State& state = d.state<State>();
    state.ticket.store(swiss::kNoTicket, std::memory_order_relaxed);
    state.greedy_at = d.writes.begin() + swiss::kTimidWrites;
  }

  [[gnu::noinline, gnu::cold]] static void be_greedy(Descriptor& d) noexcept {
    State& state = d.state<State>();
    state.ticket.store(swiss::tickets.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    state.greedy_at = d.writes.end();
  }

  // Aborts if an earlier ticket has asked for it.
  [[gnu::always_inline]] static void heed(Descriptor& d) noexcept {
    const State& state = d.state<State>();
    const std::uint64_t killed = state.killed.load(std::memory_order_relaxed);
    if (killed / 8 == state.attempt.load(std::memory_order_relaxed)) [[unlikely]]
      give_up(d, static_cast<AbortCause>(killed % 8));
  }

  // The write lock of `record`, which guards `word`, was seen taken by another. Returns once that has changed.
  [[gnu::noinline, gnu::cold]] static void meet(Descriptor& d, const Orec& lock, const Orec& record, std::uint64_t seen,
                                                const Word* word) noexcept {
    const std::uint64_t mine = d.state<State>().ticket.load(std::memory_order_relaxed);
    const AbortCause cause = cause_of<kBlame>(d, record, seen, word);
    if (mine == swiss::kNoTicket) give_up(d, cause);
    State& owner = Descriptor::of_slot(owner_of(seen))->state<State>();
    sync::Backoff backoff;
    for (unsigned round = 0; round < swiss::kRoundsMax; ++round) {
      // By number: a later attempt of the owner is not meant. That it has the lock is looked at after its number.
      const std::uint64_t attempt = owner.attempt.load(std::memory_order_relaxed);
      if (lock.load(std::memory_order_acquire) != seen) return;
      if (owner.ticket.load(std::memory_order_relaxed) < mine) give_up(d, cause);
      owner.killed.store(attempt * 8 + static_cast<std::uint64_t>(cause), std::memory_order_relaxed);
      heed(d);
      LOAM_POINT("tm.waiting");
      backoff.wait();
    }
    give_up(d, cause);
  }

  // ---- validation

  // The value of a word that this attempt has not written and whose record is not old: too new, or in a commit.
  [[gnu::noinline]] static Word load_word_slow(Descriptor& d, Orec& record, Word* word) noexcept {
    sync::Backoff backoff;
    for (unsigned round = 0;;) {
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (is_locked(before)) {
        if (round++ == swiss::kRoundsMax) conflict(d, record, before, word);
        heed(d);
        LOAM_POINT("tm.waiting");
        backoff.wait();
        continue;
      }
      if (before > d.snapshot) extend(d);
      LOAM_POINT("tm.reading");
      const Word value = load_whole(word);  // P2
      // Also after extending: the record is not in the read set yet, so its version is compared once more.
      if (record.load(std::memory_order_relaxed) == before && before <= d.snapshot) {
        log_read<kBlame>(d, record, word);
        return value;
      }
    }
  }

  // Moves the snapshot to now if everything read is still as it was.
  static void extend(Descriptor& d) noexcept {
    const std::uint64_t now = version_clock.now.load(std::memory_order_acquire);  // P4: before validating
    LOAM_POINT("tm.extending");
    validate(d);
    d.snapshot = now;
  }

  // Aborts unless every record of the read set is at most as new as the snapshot, or locked by this attempt's commit
  // (which owned the stripe at such a version).
  static void validate(Descriptor& d) noexcept {
    for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry) {
      const std::uint64_t now = (*entry)->load(std::memory_order_acquire);  // P3
      if (now > d.snapshot && !is_locked_by(now, d.slot)) [[unlikely]] {
        const Word* word = nullptr;
        if constexpr (kBlame) word = d.read_addresses.begin()[entry - d.reads.begin()];
        conflict(d, **entry, now, word);
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
    if (before != d.snapshot) validate(d);
    LOAM_POINT("tm.validated");
    state.records_locked = false;
    return d.snapshot = before + 1;
  }

  // kParts: not whole words alone.
  template <bool kParts>
  static void write_back(Descriptor& d, std::uint64_t version) noexcept {
    const WriteEntry* const begin = d.writes.begin();
    const WriteEntry* const end = d.write_end;
    for (const WriteEntry* entry = begin; entry != end; ++entry) {
      if constexpr (kParts)
        store_masked(address_of(*entry), entry->value, entry->mask);  // P2
      else
        std::atomic_ref<Word>(*address_of(*entry)).store(entry->value, std::memory_order_release);  // P2
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
    if (d.state<State>().greedy_at == d.writes.end()) [[unlikely]]
      be_timid(d);
    waiting::notify(d, end);
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    if (d.write_end != d.writes.begin()) write_back<true>(d, commit_version(d));
    d.state<State>().history.clear();
    lifecycle::committed_special(d, d.snapshot);
  }

  // Leaves no trace of the attempt but the count of its cause, and its ticket.
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
    give_up(d, word == nullptr ? AbortCause::unknown : cause_of<kBlame>(d, record, seen, word));
  }

  // Ends the attempt and starts the next one after a pause, linear in the failures so far. The ticket stays: it was
  // drawn for the transaction.
  [[noreturn, gnu::noinline, gnu::cold]] static void give_up(Descriptor& d, AbortCause cause) noexcept {
    undo(d, cause);
    d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4; else that of the failed attempt would stay
    State& state = d.state<State>();
    if (state.failed_after != d.statistics.commits) state.failures = 0;
    state.failed_after = d.statistics.commits;
    state.failures = std::min(state.failures + 1, swiss::kFailuresCounted);
    for (unsigned i = state.random.below(state.failures * swiss::kPausesPerFailure); i > 0; --i) platform::pause();
    lifecycle::restart(d, kRestart);
  }
};

}  // namespace loam::tm
