// epoch: memory that other threads may still read is freed when every reader of its age is gone.
//   A reader enters (announces the current epoch in a slot of its own) and leaves. Memory that was unlinked is retired
//   into a list of the thread; a scan advances the epoch, stamps what the list holds with the new value, and frees what
//   is stamped with a value that every announced epoch has reached.
//   Guarantees  a block retired while a reader is inside is not freed before that reader leaves. An idle thread holds
//               nothing back. What one thread may hold back is bounded (limits below).
//   Cost        enter: one load, one store, no fence (asymmetric barrier); leave: one store; retire: an append; the
//               scan and its membarrier are paid once per batch.
//   When not    readers that stay inside for long while much is retired: see Limits for what happens then.
// Invariants
//   E1 an entry's stamp is the result of an advance of the global epoch that came after the unlinking. (A stamp read at
//      retirement could be too old: the load may overtake the unlinking stores.)
//   E2 an entry is freed only after an announce_heavy() and a scan that found no slot below its stamp. A reader that
//      announces the stamp or more has acquired the advance, hence sees the unlinking.
//   E3 stamps do not decrease along a limbo list; entries from stamped_ on have none yet.
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

inline constexpr std::uint64_t kIdle = ~0ULL;

// Where a reader announces itself. One writer, and a line pair of its own: scans of others must not slow its stores.
struct alignas(platform::kApartBytes) Participant {
  std::atomic<std::uint64_t> epoch{kIdle};
};

struct Limits {
  std::size_t batch_blocks = 512;              // retirements between two scans: bounds the membarriers per free
  std::size_t held_bytes_max = 64ULL << 20;    // of one thread; over this, retirers wait (outside of any read section)
  std::uint64_t wait_ns_max = 1'000'000'000;  // and after this long they report the stall and go on: the bound doubles
};

struct Retired {
  void* block;
  Deleter deleter;
  std::uint64_t stamp;
  std::uint64_t bytes;
};

// What one thread has retired and not yet freed: a ring in OS pages, mapped at first use.
class Limbo {
 public:
  std::size_t blocks() const noexcept { return tail_ - head_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  friend class Domain;
  static constexpr std::size_t kCapacity = std::size_t{1} << 22;  // 128 MiB of addresses, backed as used
  static constexpr std::size_t kMask = kCapacity - 1;

  Retired& at(std::uint64_t index) noexcept { return ring_[index & kMask]; }

  Retired* ring_ = nullptr;
  std::uint64_t head_ = 0;     // oldest entry
  std::uint64_t stamped_ = 0;  // first entry without a stamp
  std::uint64_t tail_ = 0;     // one past the newest
  std::size_t bytes_ = 0;
  std::size_t since_scan_ = 0;
};

// One set of readers and the memory they guard. Every member function but the counters is called by registered threads.
class Domain {
 public:
  static constexpr unsigned kSlots = 1024;

  explicit constexpr Domain(Limits limits = {}) noexcept : limits_(limits), held_bytes_max_(limits.held_bytes_max) {}
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // Registers the calling thread; fatal when kSlots threads are registered. Slots are reused after release().
  unsigned acquire_slot() noexcept;
  // Hands the thread's limbo over to the domain (others free it later) and gives the slot back.
  void release_slot(unsigned slot, Limbo& limbo) noexcept;

  Participant& participant(unsigned slot) noexcept { return participants_[slot]; }

  void enter(Participant& self) noexcept {
    // epoch.A: acquire pairs with the advance in reclaim(): a reader that announces an epoch sees every unlinking before
    // it (E2). The announcement itself pairs with announce_heavy() in oldest_announced().
    platform::announce_light(self.epoch, global_.load(std::memory_order_acquire));
  }

  void leave(Participant& self) noexcept {
    // epoch.B: release pairs with the acquire scan: the reads of this section happen before the free.
    self.epoch.store(kIdle, std::memory_order_release);
  }

  // Hands over a block that no new reader can find. Call inside or outside a read section.
  void retire(Limbo& limbo, void* block, Deleter deleter, std::size_t bytes) noexcept;

  // Frees what has become free if a batch is due; waits if too much is held back. Call outside any read section, holding
  // nothing that a reader may wait for.
  void settle(Limbo& limbo) noexcept {
    if (limbo.since_scan_ >= limits_.batch_blocks) [[unlikely]] settle_slow(limbo);
  }

  // Frees what can be freed now. returns how many blocks of `limbo` are still held back
  std::size_t reclaim(Limbo& limbo) noexcept;

  // Blocks freed so far, and stalls that outlasted Limits::wait_ns_max, over all threads.
  std::uint64_t freed_blocks() const noexcept { return freed_.load(std::memory_order_relaxed); }
  std::uint64_t stalls_reported() const noexcept { return stalls_.load(std::memory_order_relaxed); }

 private:
  void append(Limbo& limbo, const Retired& entry) noexcept;
  void settle_slow(Limbo& limbo) noexcept;
  bool over_limit(const Limbo& limbo) const noexcept;
  std::uint64_t oldest_announced() noexcept;
  void adopt_orphans(Limbo& limbo) noexcept;

  const Limits limits_;
  std::atomic<std::size_t> held_bytes_max_;  // grows when a stall is reported
  // Read at every enter, written once per batch: alone on its lines.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> global_{1};
  alignas(platform::kApartBytes) std::array<Participant, kSlots> participants_{};
  sync::ThreadSlots<kSlots> slots_;
  sync::SpinLock orphans_lock_;
  Limbo orphans_;                             // guarded by orphans_lock_
  std::atomic<std::size_t> orphan_blocks_{0};  // a hint, so that most scans do not take the lock
  std::atomic<std::uint64_t> freed_{0};
  std::atomic<std::uint64_t> stalls_{0};
};

}  // namespace loam::reclaim
