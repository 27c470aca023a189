// norec: no ownership records; one sequence number, and validation by value.
//   Writes go to a redo log. Reads log address and value. While the sequence number is that of the snapshot, no thread
//   has committed, and every read is valid at once. When it has changed, all logged values are compared with memory. If
//   they are the same, the snapshot moves forward. A commit makes the sequence number odd, which only one thread can
//   do, writes back, and makes it even again.
//   Source      Dalessandro, Spear and Scott, "NOrec: Streamlining STM by Abolishing Ownership Records", PPoPP 2010.
//   Guarantees  opacity. Publication safe. Privatization safe: a write-back ends before the next commit begins, and
//               reads before a commit are compared with memory after it. So no commit has to wait for other attempts
//               under Privatization::commit. (Plain code may change unlinked memory at once, but not unmap it: a read
//               loads the value before it loads the sequence number. Memory freed in a transaction waits for
//               quiescence. A processor that reorders stores, which x86 does not, would need a store barrier after P1.)
//   Conflicts   only by values. There is no mapping, so there are no false conflicts, and the allocator has no effect
//               on them. Writing the value that a word already has causes no conflict. A value is compared at the width
//               of its read, because other bytes of the word do not belong to the read. Every abort by a value has the
//               cause same_word. `unknown` counts attempts that gave up waiting for a writer that was not running. Of
//               the contention managers only backoff and pure-suicide have an effect; the others need an owner and act
//               as suicide.
//   Cost        every read is logged, also in read-only transactions, 16 bytes each. After a commit of another thread
//               the next read, or the commit, compares everything that was read. Commits are serial.
//   When not    more than about eight threads that update; long readers beside writers. Bodies that read their own
//               memory (new blocks, locals) through the transaction and then change it plainly: that looks like a
//               conflict. retry() beside frequent commits: each of them runs the body again, and its abort handlers;
//               after a spurious wake-up the next change may be noticed some milliseconds late (waiting.hpp).
// Memory orders; in brackets the failure without the pair
//   P1 publish   sequence store(release) after the write-back / sequence load(acquire) at begin and in validation
//                [new sequence, old data]
//   P2 seqlock   data store(release) after the sequence CAS / data load(acquire), also of validation, then sequence
//                load(relaxed) or CAS
//                [new data under the old sequence]
//   P3 commits   the sequence CAS(acq_rel) / that of the other committer: RMWs of one word [two writers at once]
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/logs/redo_log.hpp"

#include <atomic>

namespace loam::tm {

// The sequence number. Even: no commit is writing back; odd: one is. Each commit adds two. It has its own cache lines.
struct alignas(platform::kApartBytes) Sequence {
  std::atomic<std::uint64_t> now{0};
};
// Not an inline variable: inline accesses of C refer to its symbol (include/loam/tm_norec.h). A symbol that several
// object files may define could not be copied into a program.
extern constinit Sequence norec_sequence;

// Nobody counts validations. Another policy: Watched in auto.hpp.
struct Unwatched {
  static void validates(Descriptor&) noexcept {}
};

// kBlame: as in algorithm.hpp.  Watch: a policy as Unwatched
template <bool kBlame, class Watch>
struct NorecWith {
  static constexpr bool kUsesRecords = false;
  static constexpr bool kReadOnlyExtends = true;
  static constexpr bool kReadsAlike = true;
  static constexpr bool kPrivatizesSafely = true;

  struct WordRead {
    const Word* address;
    Word value;
  };
  struct PartRead {
    const void* address;
    std::uint32_t value;
    std::uint32_t bytes;
  };
  static constexpr std::size_t kReadEntryBytes = sizeof(WordRead);

  class Handle {
   public:
    explicit Handle(Descriptor& d) noexcept : d_(&d) {}
    Descriptor& descriptor() const noexcept { return *d_; }

   protected:
    Descriptor* d_;
  };

  // Reads only. It has no write set to search.
  class ReadOnlyTx : public Handle, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Handle::Handle;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      return load_memory(*this->d_, address);
    }
  };

  // Reads and writes. kNested: what it changes of older entries can be undone.
  template <bool kNested>
  class Writing : public Handle, public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    using Handle::Handle;

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      if (redo(*this->d_).may_hold(word_of(address))) [[unlikely]]
        return load_written(*this->d_, address);
      return load_memory(*this->d_, address);
    }

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      redo(*this->d_).template store<kNested>(*this->d_, address, value, mask, this->d_->no_record);
    }
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  struct Savepoint {
    RedoLog::Savepoint redo;
    std::uint64_t allocated;
  };

  // Whether a descriptor has room for its state and one of another algorithm.
  template <class Other>
  static consteval bool has_room_beside() {
    return Descriptor::kHasRoomForBoth<State, Other>;
  }

  static void attach(Descriptor& d) noexcept {
    State& state = d.make_state<State>();
    state.redo.attach(d);
    // They take the place of the log of records, which stays empty: so the distance to the other logs is the same.
    const auto offset = reinterpret_cast<std::uintptr_t>(d.reads.begin()) % platform::kPageBytes;
    state.words.reserve(kReadsMax, offset, "read set");
    state.words_limit = state.words.end();
    state.parts.reserve(kReadsMax, offset, "read set (parts of words)");
    state.parts_limit = state.parts.end();
    state.abandoned.reserve(d.allocated.capacity(), 0, "log of abandoned blocks");
    state.abandoned_count = 0;
    d.read_cursor = d.reads.begin();
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
    begin(d);
    d.mode = mode;
  }

  // Every read was valid at the snapshot: nothing is left to check.
  static void commit_read_only(Descriptor& d) noexcept {
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, 0);
    lifecycle::committed(d);
  }

  // Returns if the attempt has committed; otherwise the attempt restarts.
  static void commit_update(Descriptor& d) noexcept {
    if (d.special) return commit_special(d);
    if (d.write_end != d.writes.begin()) commit_writes<false>(d);
    lifecycle::committed(d);
  }

  // Undoes all effects of the attempt, and counts the cause of its abort.
  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    redo(d).clear(d);
    free_abandoned(d.state<State>(), false);
    lifecycle::aborted(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept {
    d.special = true;  // its commit clears the history
    return {redo(d).save(d), d.allocated_count};
  }

  // Reads since the savepoint stay in the read set, and validation loads them again. They may be reads of blocks that
  // were allocated since, so these blocks are kept until the attempt ends.
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    State& state = d.state<State>();
    state.redo.restore(d, savepoint.redo);
    while (d.allocated_count > savepoint.allocated) {
      if (state.abandoned_count == state.abandoned.capacity()) state.abandoned.full();
      state.abandoned.begin()[state.abandoned_count++] = d.allocated.begin()[--d.allocated_count];
    }
  }

  // Whether no thread has committed a write. Values are not compared, because the memory that was read may be unmapped.
  static bool unchanged(Descriptor& d) noexcept {
    return norec_sequence.now.load(std::memory_order_acquire) == d.snapshot;
  }

  static bool has_read(Descriptor& d) noexcept {
    const State& state = d.state<State>();
    return state.words_end != state.words.begin() || state.parts_end != state.parts.begin();
  }

 private:
  friend struct InlinedLayout;  // c/inlined.cpp

  // Addresses only, backed as used.
  static constexpr std::size_t kReadsMax = std::size_t{1} << 26;
  // A commit that keeps the sequence number odd for longer than this is assumed not to be running.
  static constexpr std::uint64_t kWriterNsMax = 50'000;

  // Inline accesses of C know the layout up to the filter at the start of `redo`.
  struct State {
    WordRead* words_end;
    WordRead* words_limit;
    PartRead* parts_end;
    PartRead* parts_limit;
    RedoLog redo;
    Log<WordRead> words;
    Log<PartRead> parts;
    Log<void*> abandoned;  // entries of Descriptor::allocated, of parts that were undone
    std::size_t abandoned_count;
  };

  static RedoLog& redo(Descriptor& d) noexcept { return d.state<State>().redo; }

  // Works even while a commit writes back: the snapshot is then the number before it, and the first read validates.
  [[gnu::always_inline]] static void begin(Descriptor& d) noexcept {
    State& state = d.state<State>();
    d.snapshot = norec_sequence.now.load(std::memory_order_acquire) & ~std::uint64_t{1};  // P1
    LOAM_POINT("tm.began");
    state.words_end = state.words.begin();
    state.parts_end = state.parts.begin();
  }

  // ---- reads --------------------------------------------------------------------------------------------------------

  template <class U>
  [[gnu::always_inline]] static U load_now(const void* address) noexcept {
    return std::atomic_ref<U>(*static_cast<U*>(const_cast<void*>(address))).load(std::memory_order_acquire);  // P2
  }

  template <class U>
  [[gnu::always_inline]] static U load_memory(Descriptor& d, const U* address) noexcept {
    U value = load_now<U>(address);
    LOAM_POINT("tm.reading");
    if (!platform::holds(norec_sequence.now, d.snapshot)) [[unlikely]]  // relaxed: P2 orders it after the data
      value = load_slow(d, address);
    log(d, address, value);
    return value;
  }

  // A word that the attempt may have written. Not a member function of the handle: that must not escape, or its field
  // would leave its register.
  template <class U>
  [[gnu::noinline]] static U load_written(Descriptor& d, const U* address) noexcept {
    return redo(d).read(d, address, [&] { return load_memory(d, address); });
  }

  // Returns a value that is valid together with all earlier reads. It is loaded again after each validation.
  template <class U>
  [[gnu::noinline]] static U load_slow(Descriptor& d, const U* address) noexcept {
    for (;;) {
      validate(d);
      const U value = load_now<U>(address);
      LOAM_POINT("tm.reading");
      if (norec_sequence.now.load(std::memory_order_relaxed) == d.snapshot) return value;  // P2 orders it
    }
  }

  [[gnu::always_inline]] static void log(Descriptor& d, const Word* address, Word value) noexcept {
    State& state = d.state<State>();
    WordRead* const entry = state.words_end;
    if (entry == state.words_limit) [[unlikely]]
      state.words.full();
    *entry = {address, value};
    state.words_end = entry + 1;
  }
  template <class U>
  [[gnu::always_inline]] static void log(Descriptor& d, const U* address, U value) noexcept {
    static_assert(sizeof(U) <= sizeof(PartRead::value));
    State& state = d.state<State>();
    PartRead* const entry = state.parts_end;
    if (entry == state.parts_limit) [[unlikely]]
      state.parts.full();
    *entry = {address, value, sizeof(U)};
    state.parts_end = entry + 1;
  }

  // ---- validation ---------------------------------------------------------------------------------------------------

  static bool holds_still(const WordRead& read) noexcept { return load_now<Word>(read.address) == read.value; }
  static bool holds_still(const PartRead& read) noexcept {
    switch (read.bytes) {
      case 1:
        return load_now<std::uint8_t>(read.address) == read.value;
      case 2:
        return load_now<std::uint16_t>(read.address) == read.value;
      default:
        return load_now<std::uint32_t>(read.address) == read.value;
    }
  }

  // Moves the snapshot to now if all words that were read have the same values; aborts otherwise. If another thread
  // commits meanwhile, the sequence number changes, and the caller, which reads it again, validates again.
  [[gnu::noinline]] static void validate(Descriptor& d) noexcept {
    Watch::validates(d);
    const State& state = d.state<State>();
    const std::uint64_t now = settled_sequence(d);  // P1: before comparing
    LOAM_POINT("tm.extending");
    for (const WordRead* read = state.words.begin(); read != state.words_end; ++read)
      if (!holds_still(*read)) [[unlikely]]
        conflict(d, AbortCause::same_word);
    for (const PartRead* read = state.parts.begin(); read != state.parts_end; ++read)
      if (!holds_still(*read)) [[unlikely]]
        conflict(d, AbortCause::same_word);
    d.snapshot = now;
  }

  // Waits until no commit writes back, and returns the sequence number. Aborts after kWriterNsMax.
  static std::uint64_t settled_sequence(Descriptor& d) noexcept {
    std::uint64_t now = norec_sequence.now.load(std::memory_order_acquire);
    if (now % 2 == 0) [[likely]]
      return now;
    const std::uint64_t deadline = platform::monotonic_ns() + kWriterNsMax;
    sync::Backoff backoff;
    for (;;) {
      backoff.wait();
      now = norec_sequence.now.load(std::memory_order_acquire);
      if (now % 2 == 0) return now;
      if (platform::monotonic_ns() > deadline) conflict(d, AbortCause::unknown);
    }
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  template <bool kParts>
  static void commit_writes(Descriptor& d) noexcept {
    LOAM_POINT("tm.committing");
    for (std::uint64_t now = d.snapshot; !norec_sequence.now.compare_exchange_strong(
             now, d.snapshot + 1, std::memory_order_acq_rel, std::memory_order_relaxed);  // P2, P3
         now = d.snapshot)
      validate(d);
    LOAM_POINT("tm.locked");
    LOAM_POINT("tm.validated");
    for (const WriteEntry* entry = d.writes.begin(); entry != d.write_end; ++entry)
      if constexpr (kParts)
        store_masked(address_of(*entry), entry->value, entry->mask);  // P2
      else
        std::atomic_ref<Word>(*address_of(*entry)).store(entry->value, std::memory_order_release);  // P2
    LOAM_POINT("tm.written");
    norec_sequence.now.store(d.snapshot + 2, std::memory_order_release);  // P1
    redo(d).clear(d);
    waiting::notify();
  }

  [[gnu::noinline]] static void commit_special(Descriptor& d) noexcept {
    if (d.write_end != d.writes.begin()) commit_writes<true>(d);
    free_abandoned(d.state<State>(), true);
    lifecycle::committed_special(d, 0);
  }

  static void free_abandoned(State& state, bool committed) noexcept {
    while (state.abandoned_count > 0) memory::free_entry(state.abandoned.begin()[--state.abandoned_count], committed);
  }

  [[noreturn, gnu::noinline, gnu::cold]] static void conflict(Descriptor& d, AbortCause cause) noexcept {
    rollback(d, cause);
    lifecycle::restart(d, kRestart);
  }
};

template <bool kBlame>
struct Norec : NorecWith<kBlame, Unwatched> {
  static constexpr AlgorithmDescription kDescription{.name = "norec",
                                                     .summary = "one sequence word, redo log, validation by value",
                                                     .paper = "NOrec, PPoPP 2010",
                                                     .guarantees = "opacity; publication safe; privatization safe"};
};

}  // namespace loam::tm
