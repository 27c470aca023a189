// epoch: epoch-based reclamation. Memory that other threads may still read is freed when all readers of its epoch have
//   left. A reader enters (announces the current epoch in its own slot) and leaves. Unlinked memory is retired into a
//   list of the thread. A scan advances the epoch, stamps the entries of the list with the new value, and finds the
//   ripe ones: those whose stamp every thread has passed. Ripe blocks are freed a few at a time, as many as are
//   retired, because many frees at once would overflow the allocator's thread cache.
//   Source      epochs: Fraser's thesis, 2004; freeing in portions: "Are your epochs too epic?", PPoPP 2024.
//   Guarantees  a block retired while a reader is inside is not freed before that reader leaves. An idle thread delays
//               no block. The memory that waits for one thread is bounded (Limits).
//   Cost        enter: one load, one store, no fence; leave: one load, one store; retire: an append; a scan per batch.
//               A thread that has entered since the advance is known to be past it; only for threads that have not
//               moved at all a scan must interrupt them (announce_heavy), so busy threads never pay it.
//   When not    readers that stay inside for long while much is retired: see Limits for what happens then.
// Invariants
//   E1 an entry's stamp is the result of an advance of the global epoch that came after the unlinking. (A stamp read at
//      retirement could be too old: the load may overtake the unlinking stores.)
//   E2 an entry is ripe once each registered thread either has announced its stamp or more, now or before (then it has
//      acquired the advance, hence saw the unlinking, and what it read earlier is over), or was seen idle after an
//      announce_heavy(). (Without the barrier an idle thread may be inside already, its announcement under way.)
//   E3 a limbo list is [head_, ripe_) free to go, then batches that share a stamp, in the order of their stamps, then
//      what has been retired since the last scan.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/sync/thread_slots.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::reclaim {

using Deleter = void (*)(void* block);

// A slot holds the epoch announced last, with this bit while the thread is outside.
inline constexpr std::uint64_t kIdleBit = 1ULL << 63;
inline constexpr std::uint64_t kNobody = ~kIdleBit;  // later than every epoch

constexpr std::uint64_t announced_epoch(std::uint64_t slot) noexcept { return slot & ~kIdleBit; }
constexpr bool is_idle(std::uint64_t slot) noexcept { return (slot & kIdleBit) != 0; }

// Where a reader announces itself. One writer, and a line pair of its own: scans of others must not slow its stores.
struct alignas(platform::kApartBytes) Participant {
  std::atomic<std::uint64_t> slot{kIdleBit};
};

struct Limits {
  std::size_t batch_blocks = 64;  // retirements between two scans
  // Of one thread, each block with its entry in the list; over it, retirers wait (outside of any read section). So much
  // is held back where a reader is not running: others retire as fast as they can until it leaves. What it takes in
  // memory may be twice that: the list's part in use is a power of two, and an allocator rounds up.
  std::size_t held_bytes_max = 64ULL << 20;
  std::uint64_t wait_ns_max = 1'000'000'000;  // and after this long they report the stall and go on: the bound doubles
};

struct Retired {
  void* block;
  Deleter deleter;
  std::uint64_t bytes;
};

// What one thread has retired and not yet freed: a ring in OS pages, mapped at first use. It turns within the part in
// use, which doubles when it is full: a few KiB that stay in the cache, as long as readers keep moving.
class Limbo {
 public:
  std::size_t blocks() const noexcept { return tail_ - head_; }
  // Of the blocks, and of the list that holds them: blocks of unknown size count at least their entries.
  std::size_t bytes() const noexcept { return bytes_ + blocks() * sizeof(Retired); }
  std::size_t capacity() const noexcept { return capacity_; }  // entries of the list's part in use
  std::size_t proposals() const noexcept { return proposed_; }
  bool has_proposals() const noexcept { return proposed_ != 0; }

 private:
  friend class Domain;
  // Entries reserved: 1.5 GiB of addresses, backed as used, or 24 MiB where the system refuses that (`ulimit -v`).
  static constexpr std::size_t kReservedMax = std::size_t{1} << 26, kReservedLeast = std::size_t{1} << 20;
  static constexpr std::size_t kCapacityAtFirst = 256;
  static constexpr unsigned kBatchesMax = 8;  // more join the newest: they are freed late, never early

  struct Batch {
    std::uint64_t end;  // one past its last entry
    std::uint64_t stamp;
  };

  Retired& at(std::uint64_t index) noexcept { return ring_[index & (capacity_ - 1)]; }
  bool is_full() const noexcept { return blocks() + proposed_ == capacity_; }
  bool can_grow() const noexcept { return ring_ == nullptr || capacity_ < reserved_; }
  void grow_or_die() noexcept;
  void reserve_or_die() noexcept;
  void make_room(std::size_t wanted) noexcept;

  // Writes an entry behind the list; accept() makes it part of it.
  void propose(void* block, Deleter deleter, std::size_t bytes) noexcept {
    if (is_full()) [[unlikely]]
      grow_or_die();
    Retired& entry = at(tail_ + proposed_++);
    entry.block = block;
    entry.deleter = deleter;
    entry.bytes = bytes;
    proposed_bytes_ += bytes;
  }
  void accept() noexcept {
    tail_ += proposed_;
    bytes_ += proposed_bytes_;
    // Large blocks make a batch due sooner: 64 of 4 KiB weigh as much as 128 small ones.
    since_scan_ += proposed_ + proposed_bytes_ / 4096;
    since_settle_ += proposed_;
    withdraw();
  }
  void withdraw() noexcept { proposed_ = proposed_bytes_ = 0; }
  // All but the first `kept`.
  void withdraw_to(std::size_t kept) noexcept {
    while (proposed_ > kept) proposed_bytes_ -= at(tail_ + --proposed_).bytes;
  }

  // Everything without a stamp becomes a batch with this one.
  void stamp(std::uint64_t stamp) noexcept;
  // Batches up to this stamp become free to go.
  void ripen(std::uint64_t oldest) noexcept;

  Retired* ring_ = nullptr;
  std::size_t capacity_ = 0;  // entries in use: a power of two once there is a ring
  std::size_t reserved_ = 0;  // entries that addresses are reserved for
  std::uint64_t head_ = 0;    // oldest entry
  std::uint64_t ripe_ = 0;    // first entry that may not be freed yet
  std::uint64_t tail_ = 0;    // one past the newest
  std::size_t bytes_ = 0;
  std::size_t proposed_ = 0;        // entries behind the tail
  std::size_t proposed_bytes_ = 0;  // of them
  std::size_t since_scan_ = 0;      // weight retired since the last scan
  std::size_t since_settle_ = 0;    // blocks retired since the last settle()
  unsigned batches_ = 0;
  Batch batch_[kBatchesMax]{};
};

// One set of readers and the memory they guard. Every member function but the counters is called by registered threads.
class Domain {
 public:
  static constexpr unsigned kSlots = 16384;

  explicit constexpr Domain(Limits limits = {}) noexcept : limits_(limits), held_bytes_max_(limits.held_bytes_max) {}
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // Backs the memory that the first thread writes when it registers: a page fault less then.
  void touch() noexcept { slots_.touch(); }

  // A slot for the calling thread; fatal when all kSlots are taken. Slots are reused after release_slot().
  unsigned acquire_slot() noexcept;
  // Registers the thread: from now on it announces itself in `self`, which must never be unmapped: a scan
  // of another thread may still look at it after release_slot(), and the next thread in the slot may use it again.
  void attach(unsigned slot, Participant& self) noexcept;
  // Hands the thread's limbo over to the domain (others free it later) and gives the slot back.
  void release_slot(unsigned slot, Limbo& limbo) noexcept;

  void enter(Participant& self) noexcept {
    // epoch.A: acquire pairs with the advance in scan(): a reader that announces an epoch sees every unlinking before
    // it (E2). The announcement pairs with announce_heavy() in scan().
    platform::announce_light(self.slot, global_.load(std::memory_order_acquire));
  }

  void leave(Participant& self) noexcept {
    // epoch.B: a release store; pairs with the acquire in scan(): the reads of this section happen before the free.
    static_assert(kIdleBit == 1ULL << 63);
    platform::set_top_bit(self.slot);
  }

  // Hands over a block that no new reader can find. Call inside or outside a read section.
  void retire(Limbo& limbo, void* block, Deleter deleter, std::size_t bytes) noexcept {
    limbo.propose(block, deleter, bytes);
    limbo.accept();  // E1: the stamp comes with the next advance
  }

  // The same in two steps, for a transaction: what it frees is proposed while it runs, and retired if it commits or
  // forgotten if it aborts; either costs the same for any number of blocks.
  void propose(Limbo& limbo, void* block, Deleter deleter, std::size_t bytes) noexcept {
    limbo.propose(block, deleter, bytes);
  }
  void accept(Limbo& limbo) noexcept { limbo.accept(); }
  void withdraw(Limbo& limbo) noexcept { limbo.withdraw(); }
  void withdraw_to(Limbo& limbo, std::size_t kept) noexcept { limbo.withdraw_to(kept); }
  // Before a hardware transaction, which can neither call the system nor touch a page for the first time: makes room
  // for this number of proposals, as far as the list can grow.
  void make_room(Limbo& limbo, std::size_t wanted) noexcept { limbo.make_room(wanted); }

  // Call after retiring, outside any read section, holding nothing that a reader may wait for: frees a few ripe blocks,
  // scans when a batch is full, waits if too much is held back.
  void settle(Participant& self, Limbo& limbo) noexcept {
    // As many as were retired, so that the allocator's thread cache hands out what it has just been given; a few more
    // while there is a backlog.
    free_ripe(limbo, limbo.since_settle_ + (limbo.ripe_ - limbo.head_) / kBacklogShare);
    limbo.since_settle_ = 0;
    if (limbo.since_scan_ >= limits_.batch_blocks) [[unlikely]]
      settle_slow(self, limbo);
  }

  // Frees all that can be freed now. Call outside any read section.
  // returns how many blocks of `limbo` are still held back
  std::size_t reclaim(Participant& self, Limbo& limbo) noexcept;

  // Returns once every other thread has been seen outside of read sections. The caller must keep new ones out, by a
  // word that they read after announcing themselves and that was written before announce_heavy().
  void wait_for_idle(const Participant& self) const noexcept;
  // The same for so long at most. returns whether all have been seen outside
  bool is_idle_within(const Participant& self, std::uint64_t limit_ns) const noexcept;

  // Returns once no other thread is inside that was inside at the call. Call outside of read sections, holding nothing
  // that a reader may wait for. Costs a membarrier.
  void wait_for_older(const Participant& self) noexcept;

  // call(slot) for every slot that may be in use.
  template <class Call>
  void for_each_slot(Call&& call) const {
    const unsigned end = slots_.high_water();
    for (unsigned slot = 0; slot < end; ++slot) call(slot);
  }

  // Around a fork, which must not happen in the middle of a change. The child forgets the slots of the threads that are
  // not there: they hold nothing back. What they held back themselves is lost to the child.
  void lock_for_fork() noexcept { orphans_lock_.lock(); }
  void unlock_after_fork() noexcept { orphans_lock_.unlock(); }
  void forget_slot(unsigned slot) noexcept;

  // What threads have left behind at their exit and nobody has adopted yet. A moment old.
  std::uint64_t orphan_blocks() const noexcept { return orphan_blocks_.load(std::memory_order_relaxed); }
  std::uint64_t orphan_bytes() const noexcept { return orphan_bytes_.load(std::memory_order_relaxed); }

  // Stalls that outlasted Limits::wait_ns_max, over all threads.
  std::uint64_t stalls_reported() const noexcept { return stalls_.load(std::memory_order_relaxed); }

 private:
  // A backlog of ripe blocks shrinks by this share at each settle(); two batches and less are no backlog.
  static constexpr std::size_t kBacklogShare = 2 * Limits{}.batch_blocks;

  enum class Barrier { avoid, use };

  void free_ripe(Limbo& limbo, std::size_t blocks_max) noexcept {
    for (; blocks_max > 0 && limbo.head_ != limbo.ripe_; --blocks_max) {
      const Retired& entry = limbo.at(limbo.head_++);
      limbo.bytes_ -= entry.bytes;
      entry.deleter(entry.block);
    }
  }
  // call(participant) for every registered thread but the caller's.
  template <class Call>
  void for_each_other(const Participant& self, Call&& call) const;
  void scan(Participant& self, Limbo& limbo, Barrier barrier) noexcept;
  std::uint64_t oldest_epoch(const Participant& self, bool idle_counts) const noexcept;
  void settle_slow(Participant& self, Limbo& limbo) noexcept;
  bool over_limit(const Limbo& limbo) const noexcept;
  void adopt_orphans(Limbo& limbo) noexcept;
  void count_orphans() noexcept;

  const Limits limits_;
  std::atomic<std::size_t> held_bytes_max_;  // grows when a stall is reported
  // Read at every enter, written once per batch: alone on its lines.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> global_{1};
  alignas(platform::kApartBytes) std::array<std::atomic<Participant*>, kSlots> participants_{};  // nullptr: no thread
  sync::ThreadSlots<kSlots> slots_;
  sync::SpinLock orphans_lock_;
  Limbo orphans_;                              // guarded by orphans_lock_
  std::atomic<std::size_t> orphan_blocks_{0};  // a hint, so that most scans do not take the lock
  std::atomic<std::size_t> orphan_bytes_{0};   // for statistics
  std::atomic<std::uint64_t> stalls_{0};
};

}  // namespace loam::reclaim
