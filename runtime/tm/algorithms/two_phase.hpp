// two-phase: two-phase locking with visible readers and undo in place; starvation-free by wait-die.
//   A read shows itself and checks for a writer: by its thread's byte for the stripe, or by its bit where the record is
//   marked (parts/visible_reads.hpp). A write locks the ownership record, looks for readers, and stores in place.
//   Everything is held until the attempt ends. No other attempt can write a stripe that was read, so there is no clock, no
//   snapshot and no validation.
//   Source      2PLSF: Ramalhete, Correia and Felber, PPoPP 2023; wait-die: Rosenkrantz, Stearns and Lewis, TODS 1978.
//   Guarantees  opacity, and more: no attempt, not even one that will abort, reads uncommitted data. Publication and
//               privatization safe without waiting: no attempt reads or writes data that a commit has unlinked. (Memory
//               that transactions free goes through reclamation all the same, so statistics and bounds are those of
//               every algorithm and blocks return to the allocator in portions.)
//   Conflicts   An attempt that meets one draws a ticket and keeps it until it commits. It waits for attempts with a
//               later ticket or none. If it meets an earlier one, it aborts and waits, holding nothing, until that one
//               ends. The earliest never aborts for a younger one, so a transaction restarts at most once per other
//               thread. Waits are bounded, because the other side may not be running: after kRoundsMax rounds the
//               attempt starts anew with its ticket. Config::manager is not asked.
//   Versions    a record counts the commits that wrote its stripe, in steps of two. A sleeping retry() compares them; reads
//               ignore them.
//   Cost        first read of a stripe: one locked exchange, a log entry and a look at what else its group reads; later
//               reads a test of the byte. First write: one CAS and a look at a line of each group of eight threads, and of
//               each thread where the record is marked. Commit: a store per stripe. No line is shared by all.
//   When not    long reads of many stripes; data with many readers and a writer: a reader keeps writers out. Aborts by
//               a reader's byte or bit have the cause `unknown`, because these do not tell the word.
// Why no reader is missed: of a reader and a writer of one stripe one sees the other
//   the byte  T1: in the one order of all that is seq_cst, either the byte's exchange comes before the lock's CAS, and the
//             writer's load of the byte after that; or the lock's CAS before the reader's load of the record.
//   the bit   T4: a reader relies on its bit only if the load of the record that follows it has returned a marked version;
//             otherwise it shows its byte as well. Only who has locked a record takes its mark away, so the next lock
//             replaces a version that is marked, and its owner looks at bits. It waits, or gives the version back with
//             its mark. So does each later one, until the reader has ended.
//   the mark  a hint: its CAS changes neither version nor owner. It may be relaxed, because as a read-modify-write it
//             continues the release sequence of the store that released the record (T2).
//   no place  a thread without a byte always relies on its bit. It has said so in the word behind the last group before its
//             first read, and a writer that finds that looks at all bits (read_bytes.A).
//   a lock    what the attempt has locked itself it reads without any: nobody else can lock it until the attempt has ended.
// Memory orders; in brackets the failure without the pair
//   T1 Dekker   byte exchange(seq_cst), then record load(seq_cst) / lock CAS(seq_cst), then loads(seq_cst) of the other
//               threads' bytes [reader and writer miss each other: a dirty read, or a write under a reader]
//   T2 write    data store, then record store(release) / record load in T1 and T4 [new version, old data]
//   T3 read     data load, then byte and bits store(release) / their loads in T1 and T4 [a value from after the reader's
//               end]
//   T4 marked   bit exchange(seq_cst), then record load(seq_cst) of a marked version / lock CAS(seq_cst) that replaces it,
//               then loads(seq_cst) of the other threads' bits [as T1]
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/algorithms/parts/visible_reads.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/cause.hpp"
#include "runtime/tm/logs/undo_log.hpp"
#include "runtime/tm/logs/words.hpp"
#include "runtime/tm/records/mapped.hpp"
#include "runtime/tm/records/read_bytes.hpp"
#include "runtime/tm/records/stripes.hpp"

#include <atomic>

namespace loam::tm {

namespace two_phase {

inline constexpr std::uint64_t kNoTicket = ~0ULL;
using visible_reads::kNobody;
// How often an attempt that waits looks again, in pauses at first, then giving up the core: some milliseconds.
inline constexpr unsigned kRoundsMax = 2000;

inline constinit std::atomic<std::uint64_t> tickets{0};

struct Noted {
  const Orec* record;
  std::uint64_t version;
};

struct State {
  static constexpr bool kAtEnd = true;  // under auto a descriptor has it beside norec's state

  visible_reads::Shown shown;
  WriteEntry* newest_savepoint = nullptr;  // no savepoint that may still be restored lies above it
  std::uint64_t drawn_after = 0;           // commits of the thread when it drew its ticket
  Log<Noted> noted;                        // what an attempt that asked to wait had read and written
  std::size_t noted_end = 0;
  // Others read it, on conflicts only. relaxed throughout: a thread that waits checks again until the value has
  // changed.
  std::atomic<std::uint64_t> ticket{kNoTicket};
};

inline std::uint64_t ticket_of(unsigned slot) noexcept {
  Descriptor* const other = Descriptor::of_slot(slot);
  return other == nullptr ? kNoTicket : other->state<State>().ticket.load(std::memory_order_relaxed);
}

// The ticket of the transaction that runs, drawn now if it has none. One left by a transaction that then ran alone
// does not count.
inline std::uint64_t own_ticket(Descriptor& d) noexcept {
  State& own = d.state<State>();
  if (own.ticket.load(std::memory_order_relaxed) == kNoTicket || own.drawn_after != d.statistics.commits) {
    own.ticket.store(tickets.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    own.drawn_after = d.statistics.commits;
  }
  return own.ticket.load(std::memory_order_relaxed);
}

inline void drop_ticket(Descriptor& d) noexcept {
  State& own = d.state<State>();
  if (own.ticket.load(std::memory_order_relaxed) != kNoTicket) [[unlikely]]
    own.ticket.store(kNoTicket, std::memory_order_relaxed);
}

}  // namespace two_phase

template <bool kBlame>
struct TwoPhase {
  static constexpr AlgorithmDescription kDescription{
      .name = "two-phase",
      .summary = "two-phase locking with visible readers, in place; wait-die built in (manager does not apply)",
      .paper = "2PLSF, PPoPP 2023",
      .guarantees = "opacity; publication and privatization safe; starvation-free"};
  static constexpr bool kWritesInPlace = true, kReadersBlockWriters = true, kPrivatizesSafely = true;

 private:
  using State = two_phase::State;

  // What readers and writers share: reads.
  class Reading : public Mapped {
   public:
    explicit Reading(Descriptor& d) noexcept : Mapped(d), bytes_(d.state<State>().shown.place.bytes) {}

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      const std::uint64_t stripe = this->index_of(address);
      // relaxed: nobody else writes it. Where a byte stands for several stripes, that it is set does not tell that this
      // one was looked at.
      if (bytes_[read_bytes::Group::offset(stripe)].load(std::memory_order_relaxed) == 0 ||
          this->mask_ >> stripes::kIndicatorBits != 0)
        show(*this->d_, stripe, word_of(address));
      LOAM_POINT("tm.reading");
      // relaxed: while the read is shown nobody but this attempt writes it (T1 to T4).
      return std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_relaxed);
    }

   private:
    read_bytes::Byte* bytes_;
  };

 public:
  class ReadOnlyTx : public Reading, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Reading::Reading;
  };

  // kNested: what it replaces can be put back to the newest savepoint.
  template <bool kNested>
  class Writing : public Reading, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Reading::Reading;

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      Descriptor& d = *this->d_;
      Orec& record = this->record_of(address);
      const std::uint64_t seen = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
      if (WriteEntry* const own = own_entry(d, seen); own < d.write_end) {
        if (kNested || !holds(*own, address) || own->mask != ~Word{0}) keep<kNested>(d, *own, address, mask);
      } else if (is_locked(seen) || !lock(d, record, seen, address, mask)) [[unlikely]] {
        lock_slow(d, record, address, mask);
      }
      store_masked(address, value, mask);
    }
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  struct Savepoint {
    WriteEntry* write_end;
  };

  static void attach(Descriptor& d) noexcept {
    make_state(d);
    map_logs(d);
  }
  // Its two halves, for a thread that may never run an attempt of this algorithm (auto.hpp). The second maps pages, once.
  static void make_state(Descriptor& d) noexcept { d.make_state<State>(); }
  static void map_logs(Descriptor& d) noexcept {
    State& state = d.state<State>();
    if (state.shown.bits != nullptr) return;
    state.noted.reserve(kNotedMax, 0, "log of versions to wait for");
    state.shown = {.place = read_bytes::take_place(d.slot, platform::cpu_number()),
                   .bits = stripes::make_indicators(d.slot)};
  }

  static void begin_read_only(Descriptor& d) noexcept {
    lifecycle::enter<false>(d);
    entered(d, Mode::read_only);
  }
  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    entered(d, Mode::update);
  }

  // What begins an attempt within its announcement.
  [[gnu::always_inline]] static void entered(Descriptor& d, Mode mode) noexcept {
    LOAM_POINT("tm.began");
    // No attempt fails by a version: to cause_of() none is new.
    if constexpr (kBlame) d.snapshot = ~0ULL;
    d.read_cursor = d.reads.begin();
    d.mode = mode;
  }

  static void commit_read_only(Descriptor& d) noexcept {
    release_reads(d);
    ended(d);
  }

  // Cannot fail: everything is locked and written.
  static void commit_update(Descriptor& d) noexcept {
    const WriteEntry* const end = d.write_end;
    const bool writes = end != d.writes.begin();
    if (writes) {
      LOAM_POINT("tm.committing");
      LOAM_POINT("tm.validated");
      release_writes(d);
    }
    release_reads(d);
    if (writes) waiting::notify(d, end);
    ended(d);
  }

  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    undo(d, cause);
    two_phase::drop_ticket(d);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.state<State>().newest_savepoint = d.write_end;
    return {d.write_end};
  }

  // Locks taken since stay until the attempt ends (two phases); their entries have nothing to put back any more.
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    put_back(d, savepoint.write_end);
    drop_values(d, savepoint.write_end);
    d.state<State>().newest_savepoint = savepoint.write_end;
  }

  // After rollback().
  static bool has_read(Descriptor& d) noexcept { return d.read_cursor != d.reads.begin(); }

  static bool unchanged(Descriptor& d) noexcept {
    const State& state = d.state<State>();
    for (std::size_t i = 0; i < state.noted_end; ++i) {
      const auto& [record, version] = state.noted.begin()[i];
      if (!visible_reads::are_same_version(record->load(std::memory_order_acquire), version)) return false;
    }
    return true;
  }
  template <class F>
  static void waits_for(Descriptor& d, F&& f) noexcept {
    const State& state = d.state<State>();
    for (std::size_t i = 0; i < state.noted_end; ++i) f(*state.noted.begin()[i].record);
  }

 private:
  static constexpr std::size_t kNotedMax = std::size_t{1} << 27;  // as many as the read set holds

  // Committed; nothing is held any more.
  [[gnu::always_inline]] static void ended(Descriptor& d) noexcept {
    two_phase::drop_ticket(d);
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, 0);
    lifecycle::committed(d);
  }

  // Shows that the attempt reads `stripe`, and returns once nobody else has its record locked.
  [[gnu::noinline]] static void show(Descriptor& d, std::uint64_t stripe, const Word* word) noexcept {
    const visible_reads::Shown& shown = d.state<State>().shown;
    Orec& record = shared.map.base[stripe];
    std::uint64_t seen = record.load(std::memory_order_relaxed);  // relaxed: decides how to show it
    if (is_locked_by(seen, d.slot) && shown.place.is_there()) {
      // Locked until the attempt ends. The byte makes its next read short.
      log_read<kBlame>(d, record, word);
      return shown.set_byte_within_lock(stripe);
    }
    if (visible_reads::is_marked(seen) || !shown.place.is_there()) {
      if (shown.has_bit(stripe) && shared.map.mask >> stripes::kIndicatorBits == 0) return;
      LOAM_POINT("tm.showing");
      log_read<kBlame>(d, record, word);
      d.read_cursor[-1] = visible_reads::shown_by_bit(&record);
      shown.set_bit(stripe);
      seen = record.load(std::memory_order_seq_cst);  // T1, T2, T4
      if (visible_reads::is_marked(seen)) return;
      if (!shown.place.is_there()) {
        if (is_locked(seen)) await_writer(d, record, word);
        return;
      }
    }
    log_read<kBlame>(d, record, word);
    shown.set_byte(stripe);
    seen = record.load(std::memory_order_seq_cst);  // T1, T2
    if (is_locked(seen)) [[unlikely]]
      return await_writer(d, record, word);
    if (!visible_reads::is_marked(seen) && shown.has_company(stripe)) visible_reads::mark(record, seen);
  }

  static void release_reads(Descriptor& d) noexcept {
    const visible_reads::Shown& shown = d.state<State>().shown;
    const Orec* const base = shared.map.base;
    for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry) {
      const auto stripe = static_cast<std::uint64_t>(visible_reads::record_of(*entry) - base);
      if (visible_reads::is_shown_by_bit(*entry))
        shown.clear_bits(stripe);
      else
        shown.clear_byte(stripe);
    }
  }

  static void release_writes(Descriptor& d) noexcept {
    for (const WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry) {
      LOAM_POINT("tm.written");
      entry->record->store(visible_reads::next_version(entry->old_version), std::memory_order_release);  // T2
    }
    d.write_end = d.writes.begin();
  }

  // Undoes all effects of the attempt and counts the cause. The ticket stays.
  static void undo(Descriptor& d, AbortCause cause) noexcept {
    State& state = d.state<State>();
    state.noted_end = 0;
    const auto remember = [&](const Orec* record, std::uint64_t version) {
      if (state.noted_end == state.noted.capacity()) state.noted.full();
      state.noted.begin()[state.noted_end++] = {record, version};
    };
    // From the newest to the oldest: a word written twice gets its first value back, and a stripe's first entry comes
    // last and releases it. No version passes, because nobody has read what was written.
    for (WriteEntry* entry = d.write_end; entry != d.writes.begin();) {
      --entry;
      store_masked(address_of(*entry), entry->value, entry->mask);
      if (cause == AbortCause::explicit_ && entry->record != &d.no_record) remember(entry->record, entry->old_version);
      entry->record->store(entry->old_version, std::memory_order_release);  // T2
    }
    d.write_end = d.writes.begin();
    // While reads are shown, what was read cannot change: these are the versions that were read. (A record that its
    // next writer has locked already counts as changed.)
    if (cause == AbortCause::explicit_)
      for (Orec** entry = d.reads.begin(); entry != d.read_cursor; ++entry)
        remember(visible_reads::record_of(*entry), visible_reads::record_of(*entry)->load(std::memory_order_acquire));
    release_reads(d);
    lifecycle::aborted(d, cause);
  }

  // Locks a record that had `version`; keeps what the bits of `mask` of `address` were. returns false if the record
  // has changed
  [[gnu::always_inline]] static bool lock(Descriptor& d, Orec& record, std::uint64_t version, Word* address,
                                          Word mask) noexcept {
    WriteEntry& entry = *d.write_end;
    fill(entry, nullptr, address, 0, 0, record);
    entry.old_version = version;
    if (!record.compare_exchange_strong(version, d.locked_word | reinterpret_cast<std::uintptr_t>(&entry),
                                        std::memory_order_seq_cst,  // T1, T3, T4
                                        std::memory_order_relaxed)) [[unlikely]]
      return false;
    added(d);
    const auto stripe = static_cast<std::uint64_t>(&record - shared.map.base);
    if (reader_of(d, stripe, entry) != two_phase::kNobody) [[unlikely]]
      await_readers(d, stripe, entry);
    LOAM_POINT("tm.locked");
    entry.value = load_whole(address);
    entry.mask = mask;
    return true;
  }

  static unsigned reader_of(Descriptor& d, std::uint64_t stripe, const WriteEntry& lock) noexcept {
    return visible_reads::reader_of(stripe, lock.old_version, d, d.state<State>().shown);
  }

  [[gnu::noinline]] static void lock_slow(Descriptor& d, Orec& record, Word* address, Word mask) noexcept {
    std::uint64_t version;
    do {
      await_writer(d, record, address);
      version = record.load(std::memory_order_relaxed);  // relaxed: the CAS decides
    } while (is_locked(version) || !lock(d, record, version, address, mask));
  }

  // Another write to a stripe that this attempt has locked: keeps what it replaces, unless that is kept already.
  template <bool kNested>
  [[gnu::noinline]] static void keep(Descriptor& d, WriteEntry& first, Word* address, Word mask) noexcept {
    const WriteEntry* const since = kNested ? d.state<State>().newest_savepoint : d.writes.begin();
    if (!is_noted(first, address, mask, since)) note(d, first, address, mask);
  }

  // Returns once nobody else has `record` locked.
  [[gnu::noinline, gnu::cold]] static void await_writer(Descriptor& d, Orec& record, const Word* word) noexcept {
    sync::Backoff backoff;
    std::uint64_t seen = 0;
    for (unsigned round = 0; round < two_phase::kRoundsMax; ++round) {
      seen = record.load(std::memory_order_seq_cst);  // T1, T2
      if (!is_locked(seen) || is_locked_by(seen, d.slot)) return;
      const std::uint64_t theirs = two_phase::ticket_of(owner_of(seen));
      if (theirs < two_phase::own_ticket(d))
        conflict(d, cause_of<kBlame>(d, record, seen, word), owner_of(seen), theirs);
      LOAM_POINT("tm.waiting");
      backoff.wait();
    }
    conflict(d, cause_of<kBlame>(d, record, seen, word), two_phase::kNobody, 0);
  }

  // Returns once nobody else reads `stripe`, which this attempt has locked: no new reader stays.
  [[gnu::noinline, gnu::cold]] static void await_readers(Descriptor& d, std::uint64_t stripe,
                                                         const WriteEntry& lock) noexcept {
    sync::Backoff backoff;
    for (unsigned round = 0; round < two_phase::kRoundsMax; ++round) {
      const unsigned reader = reader_of(d, stripe, lock);
      if (reader == two_phase::kNobody) return;
      const std::uint64_t theirs = two_phase::ticket_of(reader);
      if (theirs < two_phase::own_ticket(d)) conflict(d, AbortCause::unknown, reader, theirs);
      LOAM_POINT("tm.waiting");
      backoff.wait();
    }
    conflict(d, AbortCause::unknown, two_phase::kNobody, 0);
  }

  // Ends the attempt; starts the next one when the transaction of `slot` with `ticket` is over, or kNobody's at once.
  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, AbortCause cause, unsigned slot,
                                                              std::uint64_t ticket) noexcept {
    undo(d, cause);
    sync::Backoff backoff;
    for (unsigned round = 0; slot != two_phase::kNobody && round < two_phase::kRoundsMax; ++round) {
      if (two_phase::ticket_of(slot) != ticket) break;
      LOAM_POINT("tm.waiting");
      backoff.wait();
    }
    lifecycle::restart(d, kRestart);
  }
};

}  // namespace loam::tm
