// etl-wb: encounter-time locking with write-back, time-based reads.
//   A write locks the stripe's ownership record at once and keeps the value in a redo log; a read is valid if its
//   record is free and not newer than the snapshot; a newer one extends the snapshot after validating what was read.
//   Commit takes a clock value, validates unless it is the next after the snapshot, writes back and releases.
//   Source      TinySTM, PPoPP 2008 (WB-ETL); time base: LSA, DISC 2006, and TL2, DISC 2006.
//   Guarantees  opacity. Publication safe. Not privatization safe by itself: memory freed in a transaction waits for
//               quiescence (memory.hpp), other plain use after unlinking must wait as well.
//   Conflicts   SUICIDE: who finds a record locked, or fails to validate, aborts itself.
//   Cost        read-only: 9 instructions a read, no log; update: 15; first write of a stripe: one CAS; commit: one
//               fetch-add and a store per word and per stripe (docs/instruction-counts.md).
//   When not    many threads on few records, which are held from first write to commit.
// Memory orders; in brackets the failure without the pair
//   P1 publish  record store(release) after the write-back / record load(acquire) before the data
//               [new version, old data]
//   P2 seqlock  data store(release) after the lock CAS / data load(acquire), then record load(relaxed) again
//               [new data under the old version]
//   P3 commits  lock CAS(acq_rel), clock fetch_add(acq_rel), then validation / the same in the other committer
//               [write skew: each validates before the other's lock is visible]
//   P4 now      the fetch_add's release / clock load(acquire) or fetch_add(acq_rel), in extend() before validating
//               [snapshot newer than what is visible]
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/blame.hpp"
#include "runtime/tm/cause.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/driver.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm {

template <bool kBlame>
struct EtlWb {
  static constexpr AlgorithmDescription kDescription{
      .name = "etl-wb",
      .summary = "encounter-time locking, write-back, timestamp extension, SUICIDE",
      .paper = "TinySTM, PPoPP 2008",
      .guarantees = "opacity; publication safe"};

  // What both kinds of attempt keep in registers: the formula of the mapping, fixed for the life of the process.
  class Attempt {
   public:
    explicit Attempt(Descriptor& d) noexcept
        : d_(&d), base_(shared.map.base), mask_(shared.map.mask), shift_(shared.map.shift) {}
    Descriptor& descriptor() const noexcept { return *d_; }

   protected:
    Orec& record_of(const void* address) const noexcept {
      return base_[(reinterpret_cast<std::uintptr_t>(address) >> shift_) & mask_];
    }

    Descriptor* d_;
    Orec* base_;
    std::uint64_t mask_;
    unsigned shift_;
  };

  // Reads only, keeps no log: a record newer than the snapshot means a new attempt.
  class ReadOnlyTx : public Attempt, public ReadAccess<ReadOnlyTx> {
   public:
    using Attempt::Attempt;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Orec& record = this->record_of(address);
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (before > this->d_->snapshot) [[unlikely]]
        conflict(*this->d_, record, before, word_of(address));
      LOAM_POINT("etl_wb.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        conflict(*this->d_, record, record.load(std::memory_order_acquire), word_of(address));
      return value;
    }
  };

  // Reads and writes.
  class UpdateTx : public Attempt, public UpdateAccess<UpdateTx, kBlame> {
   public:
    using Attempt::Attempt;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (before > d.snapshot) [[unlikely]] {
        const WriteEntry* const own = own_entry(d, before);
        if (own < d.write_end && holds(*own, word_of(address)))
          return static_cast<U>(own->value >> bit_in_word(address));
        return load_slow(d, record, address);
      }
      LOAM_POINT("etl_wb.reading");
      const U value = std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_acquire);  // P2
      if (!platform::holds(record, before)) [[unlikely]]  // relaxed: P2 orders it after the data
        return load_slow(d, record, address);
      log_read(d, record, word_of(address));
      return value;
    }

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      std::uint64_t version = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (mask != ~Word{0}) return store_slow(d, record, address, value, mask);
      if (version <= d.snapshot) [[likely]] {
        // A version up to the snapshot also covers this attempt's own earlier reads of the stripe: nothing was
        // committed to it since (the upgrade rule).
        if (lock(d, record, version, address, value, mask)) [[likely]]
          return;
      } else if (WriteEntry* const own = own_entry(d, version); own < d.write_end) {
        if (!holds(*own, address)) {
          if (own->next.load(std::memory_order_relaxed) != nullptr)  // relaxed: own chain
            return store_chained(d, *own, address, value, mask);
          return append(d, *own, nullptr, address, value, mask);
        }
        own->value = value;
        own->mask = ~Word{0};
        return;
      }
      store_slow(d, record, address, value, mask);
    }

   private:
    // Not a member function of the object: the object must not escape, or its fields would leave their registers.
    template <class U>
    [[gnu::noinline]] static U load_slow(Descriptor& d, Orec& record, const U* address) {
      return static_cast<U>(load_word_slow(d, record, word_of(address)) >> bit_in_word(address));
    }
  };

  static void begin_read_only(Descriptor& d) noexcept {
    domain.enter(d.participant);
    d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4
    LOAM_POINT("etl_wb.began");
    d.mode = Mode::read_only;
  }

  // Keeps the snapshot that the thread has, its last commit's for one: others write the clock's line all the time, and
  // what turns out to be newer extends. A value that passes as old enough is the newest, also by real time.
  static void begin_update(Descriptor& d) noexcept {
    domain.enter(d.participant);
    LOAM_POINT("etl_wb.began");
    d.read_cursor = d.reads.begin();
    d.mode = Mode::update;
  }

  // Every read was valid at the snapshot: nothing is left to check.
  static void commit_read_only(Descriptor& d) noexcept {
    ++d.statistics.commits;
    d.mode = Mode::idle;
    domain.leave(d.participant);
  }

  // Returns if the attempt has committed; restarts it otherwise.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    if (d.write_end != d.writes.begin()) write_back(d, commit_version(d));
    d.allocated_count = 0;
    commit_read_only(d);
  }

  // Leaves no trace of the attempt but the count of its cause.
  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    // The old version may come back: memory was never touched, so a reader that saw it before sees the same after.
    for (const WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry)
      entry->record->store(entry->old_version, std::memory_order_release);  // P1
    d.write_end = d.writes.begin();
    d.special = false;
    memory::undo(d);
    d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4: what failed just now is older
    ++d.statistics.aborts[static_cast<std::size_t>(cause)];
    d.mode = Mode::idle;
    domain.leave(d.participant);
    LOAM_POINT("etl_wb.aborted");
  }

 private:
  static void log_read(Descriptor& d, Orec& record, const Word* word) noexcept {
    Orec** const cursor = d.read_cursor;
    if (cursor == d.read_limit) [[unlikely]]
      d.reads.full();
    *cursor = &record;
    if constexpr (kBlame) d.read_addresses.begin()[cursor - d.reads.begin()] = word;
    d.read_cursor = cursor + 1;
  }

  static void fill(WriteEntry& entry, WriteEntry* next, Word* address, Word value, Word mask, Orec& record) noexcept {
    // relaxed: the lock CAS publishes the entry to those who meet the lock; later entries are only a hint to them.
    entry.address.store(address, std::memory_order_relaxed);
    entry.value = value;
    entry.mask = mask;
    entry.record = &record;
    entry.next.store(next, std::memory_order_relaxed);
  }

  // Locks a record that had `version` and makes `address` its first entry. returns false if the record has changed
  [[gnu::always_inline]] static bool lock(Descriptor& d, Orec& record, std::uint64_t version, Word* address, Word value,
                                          Word mask) noexcept {
    WriteEntry* const entry = d.write_end;
    fill(*entry, nullptr, address, value, mask, record);
    entry->old_version = version;
    if (!record.compare_exchange_strong(version, d.locked_word | reinterpret_cast<std::uintptr_t>(entry),
                                        std::memory_order_acq_rel,  // P2, P3
                                        std::memory_order_relaxed)) [[unlikely]]
      return false;
    LOAM_POINT("etl_wb.locked");
    added(d);
    return true;
  }

  static void added(Descriptor& d) noexcept {
    if (++d.write_end == d.write_limit) [[unlikely]]
      d.writes.full();
  }

  // The first entry of a stripe that this attempt has locked: the record's word without what all words of this thread's
  // locks share. Any other word gives an address beyond every write set.
  [[gnu::always_inline]] static WriteEntry* own_entry(const Descriptor& d, std::uint64_t record) noexcept {
    return reinterpret_cast<WriteEntry*>(record ^ d.locked_word);
  }
  static bool holds(const WriteEntry& entry, const Word* address) noexcept {
    return entry.address.load(std::memory_order_relaxed) == address;  // relaxed: own entries
  }

  // The entry for `address` in the chain of a stripe, or nullptr.
  static WriteEntry* find(WriteEntry* entry, const Word* address) noexcept {
    while (entry != nullptr && !holds(*entry, address)) entry = entry->next.load(std::memory_order_relaxed);
    return entry;
  }

  // The value of a word whose record is not free and old: locked by this attempt, locked by another, or too new.
  [[gnu::noinline]] static Word load_word_slow(Descriptor& d, Orec& record, Word* word) noexcept {
    for (;;) {
      const std::uint64_t before = record.load(std::memory_order_acquire);  // P1
      if (is_locked_by(before, d.slot)) {
        const WriteEntry* const entry = find(first_entry(before), word);
        return entry == nullptr ? load_own(word) : entry->value;
      }
      if (is_locked(before)) conflict(d, record, before, word);
      if (before > d.snapshot) extend(d);
      LOAM_POINT("etl_wb.reading");
      const Word value = load_whole(word);  // P2
      // Also after extending: the record is not in the read set yet, so its version is compared once more.
      if (record.load(std::memory_order_relaxed) == before && before <= d.snapshot) {
        log_read(d, record, word);
        return value;
      }
    }
  }

  [[gnu::noinline]] static void store_slow(Descriptor& d, Orec& record, Word* address, Word value, Word mask) noexcept {
    for (;;) {
      std::uint64_t version = record.load(std::memory_order_acquire);
      if (is_locked_by(version, d.slot)) {
        WriteEntry& first = *first_entry(version);
        return holds(first, address) ? merge(d, first, value, mask) : store_chained(d, first, address, value, mask);
      }
      if (is_locked(version)) conflict(d, record, version, address);
      if (version > d.snapshot) {
        extend(d);
        continue;
      }
      if (lock(d, record, version, address, value, mask)) {
        if (mask != ~Word{0}) complete(d, d.write_end[-1]);
        return;
      }
    }
  }

  // A word of a stripe that this attempt has locked: nobody else writes it.
  static Word load_own(Word* word) noexcept { return load_whole(word); }

  // The word around a value that may end before the word does: what lies behind it is masked out, or never written
  // back. Address sanitizer calls that an overrun, so it is kept from looking.
#ifdef LOAM_ASAN
  [[gnu::no_sanitize_address, gnu::noinline]]
#endif
  static Word load_whole(Word* word) noexcept {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }

  // A word of a stripe that this attempt has locked, but not the one of its first entry; perhaps written before.
  [[gnu::noinline]] static void store_chained(Descriptor& d, WriteEntry& first, Word* address, Word value,
                                              Word mask) noexcept {
    WriteEntry* const chain = first.next.load(std::memory_order_relaxed);  // relaxed: own chain
    if (WriteEntry* const known = find(chain, address)) return merge(d, *known, value, mask);
    append(d, first, chain, address, value, mask);
  }

  // A new entry behind a stripe's first, before `chain`. The first releases the stripe; this one, at commit and at
  // abort, releases a word that nobody looks at.
  [[gnu::always_inline]] static void append(Descriptor& d, WriteEntry& first, WriteEntry* chain, Word* address,
                                            Word value, Word mask) noexcept {
    WriteEntry& entry = *d.write_end;
    fill(entry, chain, address, value, mask, d.no_record);
    first.next.store(&entry, std::memory_order_relaxed);
    if (mask != ~Word{0}) complete(d, entry);
    added(d);
  }

  static void merge(Descriptor& d, WriteEntry& entry, Word value, Word mask) noexcept {
    entry.value = (entry.value & ~mask) | (value & mask);
    entry.mask |= mask;
    if (entry.mask != ~Word{0}) d.special = true;
  }

  // The rest of a word that is written in part, now that nobody else can write it: reads find the whole word here.
  static void complete(Descriptor& d, WriteEntry& entry) noexcept {
    entry.value = (load_own(address_of(entry)) & ~entry.mask) | (entry.value & entry.mask);
    d.special = true;
  }

  // Moves the snapshot to now if everything read is still as it was.
  static void extend(Descriptor& d) noexcept {
    const std::uint64_t now = version_clock.now.load(std::memory_order_acquire);  // P4: before validating
    LOAM_POINT("etl_wb.extending");
    validate(d);
    d.snapshot = now;
  }

  // Aborts unless every record of the read set is at most as new as the snapshot, or locked by this attempt (which
  // locked it at such a version).
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

  // The version of this commit, after validating if need be.
  static std::uint64_t commit_version(Descriptor& d) noexcept {
    LOAM_POINT("etl_wb.committing");
    const std::uint64_t before = version_clock.now.fetch_add(1, std::memory_order_acq_rel);  // P3, P4
    // Nobody committed since the snapshot, so nothing read can have changed.
    if (before != d.snapshot) validate(d);
    LOAM_POINT("etl_wb.validated");
    return d.snapshot = before + 1;
  }

  // Whole words. From the newest entry to the oldest: a stripe's first entry comes last and releases it. Stripes that
  // are still to come are locked, so a reader that sees one and needs another meets a lock.
  static void write_back(Descriptor& d, std::uint64_t version) noexcept {
    const WriteEntry* const begin = d.writes.begin();
    const WriteEntry* entry = d.write_end;
    d.write_end = d.writes.begin();
    do {
      --entry;
      std::atomic_ref<Word>(*address_of(*entry)).store(entry->value, std::memory_order_release);  // P2
      release(*entry, version);
    } while (entry != begin);
  }

  static Word* address_of(const WriteEntry& entry) noexcept {
    return entry.address.load(std::memory_order_relaxed);  // relaxed: own entries
  }

  static void release(const WriteEntry& entry, std::uint64_t version) noexcept {
    LOAM_POINT("etl_wb.written");
    if constexpr (kBlame) blame::note_write(shared.map.record(address_of(entry)), address_of(entry), version);
    entry.record->store(version, std::memory_order_release);  // P1
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    if (d.write_end != d.writes.begin()) write_back_special(d, commit_version(d));
    d.special = false;
    d.allocated_count = 0;
    const bool releases = d.limbo.has_proposals();
    if (releases) domain.accept(d.limbo);
    commit_read_only(d);
    if (releases) domain.settle(d.participant, d.limbo);
  }

  // As write_back, with parts of words among them.
  static void write_back_special(Descriptor& d, std::uint64_t version) noexcept {
    const WriteEntry* const begin = d.writes.begin();
    const WriteEntry* entry = d.write_end;
    d.write_end = d.writes.begin();
    do {
      --entry;
      store_masked(address_of(*entry), entry->value, entry->mask);
      release(*entry, version);
    } while (entry != begin);
  }

  static void store_masked(Word* address, Word value, Word mask) noexcept {
    if (mask == ~Word{0}) [[likely]] {
      std::atomic_ref<Word>(*address).store(value, std::memory_order_release);  // P2
      return;
    }
    auto* const bytes = reinterpret_cast<std::uint8_t*>(address);
    for (std::size_t i = 0; i < kWordBytes; ++i)
      if ((mask >> (i * 8)) & 1)
        std::atomic_ref<std::uint8_t>(bytes[i]).store(static_cast<std::uint8_t>(value >> (i * 8)),
                                                      std::memory_order_release);  // P2
  }

  // Ends the attempt because `record`, which was to guard `word` (nullptr: not kept), was `seen`; starts the next one.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, const Orec& record, std::uint64_t seen,
                                                              const Word* word) noexcept {
    const AbortCause cause = word == nullptr ? AbortCause::unknown : cause_of<kBlame>(d, record, seen, word);
    rollback(d, cause);
    platform::restart(d, kRestart);
  }
};

}  // namespace loam::tm
