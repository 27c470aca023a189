// Manager: paper 003's memory manager. It has one region with a hard limit, a list of its free memory, and a private
// pool for each thread: contiguous memory that only this thread uses.
//   provide()  refills a pool outside of attempts, in two critical sections: the first returns the rest of the pool to
//              the region, the second takes a new pool, twice as long as the last one.
//   A critical section is a hardware transaction if the machine has them, and otherwise takes a lock
//   (sync/elided_lock.hpp). With Settings::steal, a thread that finds the region used up takes the block from another
//   thread's pool. Every use of a pool then holds its guard, and a thief waits for it. A hardware attempt only reads
//   the guard; a thief that takes the guard aborts the attempt, so the owner begins again.
//   Guarantees  the region never grows: memory in use and the pools of all threads stay below Settings::limit_bytes.
//   When not    threads that free blocks of others: a block goes to the pool of the thread that frees it, and stays
//               there.
//   M1 a chunk is used, or in one pool, or in the region's list.   M2 no thread holds the guards of two pools, except
//   the one that forks. A thread that holds a guard may take the lock; a thread that holds the lock takes no guard.
#pragma once

#include "runtime/heap/pool/first_fit.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/platform/provision.hpp"
#include "runtime/sync/elided_lock.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace loam::heap::pool {

// What a thread gets that has run out: a whole pool, or the block that it needs.
enum class Provision { pool, block };

struct Settings {
  std::size_t pool_bytes = std::size_t{1} << 20;
  std::size_t limit_bytes = std::size_t{4} << 30;
  // The first pools of some threads, by the order in which threads begin to allocate; the main thread is number 0.
  std::size_t small_bytes = 0;  // 0: none is smaller than the others
  unsigned small_first = 2, small_count = 1;
  Provision provision = Provision::pool;
  bool private_pools = true;  // false: every call goes to the region, under the lock
  bool elide = false;
  bool steal = false;  // from other threads' pools, where the region has nothing left
};

struct alignas(platform::kApartBytes) Pool {
  FirstFit free;                 // with `guard`, where threads steal
  std::size_t bytes = 0;         // of the pool that it got last
  std::size_t wanted_bytes = 0;  // that the last call did not get
  std::uint64_t provisions = 0;  // how often it was provided after its first
  bool exhausted = false;        // the region has nothing left: the next call fails for good
  Chunk** index = nullptr;       // of its list; all entries are null where the list is empty
  Pool* next = nullptr;          // of those whose threads have ended
  Pool* older = nullptr;         // of all
  std::uint64_t steals = 0;      // how often it got a block from another pool
  alignas(platform::kApartBytes) sync::ElidedLock guard;
};

class Manager {
 public:
  // returns false where the system refuses the region
  bool start(const Settings& settings) noexcept {
    settings_ = settings;
    lock_.elide(settings.elide);
    region_ = static_cast<std::byte*>(platform::map_lazy(settings.limit_bytes, {.huge_pages = false}));
    if (region_ == nullptr) return false;
    Chunk** const index = make_index();
    if (index == nullptr) return false;
    free_.use_index(region_, index);
    auto* const all = reinterpret_cast<Chunk*>(region_ + kAlignment - kHeaderBytes);
    all->bytes = (settings.limit_bytes - kAlignment) & ~(kAlignment - 1);
    all->next = nullptr;
    free_.give(all);
    return true;
  }
  const Settings& settings() const noexcept { return settings_; }

  // Whether a block is one of this manager's.
  bool has(const void* block) const noexcept {
    const auto* const at = static_cast<const std::byte*>(block);
    return at >= region_ && at < region_ + settings_.limit_bytes;
  }

  // A pool for a thread that begins: one that was left, or a new one; nullptr where there is no memory. Outside of attempts.
  Pool* begin_thread() noexcept {
    Pool* pool = nullptr;
    lock_.run([&] {
      pool = left_;
      if (pool != nullptr) left_ = pool->next;
    });
    if (pool == nullptr) {
      pool = make_pool();
      if (pool == nullptr) return nullptr;
    }
    pool->bytes = pool->wanted_bytes = 0;
    pool->provisions = pool->steals = 0;
    pool->exhausted = false;
    const unsigned number = threads_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number, nothing else
    const bool is_small = settings_.small_bytes != 0 && number >= settings_.small_first &&
                          number - settings_.small_first < settings_.small_count;
    if (settings_.private_pools) fill(*pool, is_small ? settings_.small_bytes : settings_.pool_bytes);
    return pool;
  }

  // What is left of the pool goes back to the region.
  void end_thread(Pool& pool) noexcept {
    with(pool, [&] {
      lock_.run([&] {
        free_.give_all(pool.free);
        pool.next = left_;
        left_ = &pool;
      });
    });
  }

  // Of the thread's own pool; nullptr where it has no such chunk. in_attempt: in a hardware attempt, which ends where a thief
  // holds the pool.
  Chunk* take(Pool& pool, std::size_t chunk, bool in_attempt) noexcept {
    Chunk* found = nullptr;
    use(pool, in_attempt, [&] { found = pool.free.take(chunk); });
    return found;
  }
  void give(Pool& pool, Chunk* chunk, bool in_attempt) noexcept {
    use(pool, in_attempt, [&] { pool.free.give(chunk); });
  }

  std::size_t longest(Pool& pool) noexcept {
    std::size_t found = 0;
    with(pool, [&] { found = pool.free.longest(); });
    return found;
  }

  // Outside of attempts: the pool can serve `bytes` afterwards, as long as no thief comes, or is exhausted.
  void provide(Pool& pool, std::size_t bytes) noexcept {
    const std::size_t chunk = chunk_bytes(bytes);
    pool.exhausted = false;
    if (chunk == 0) {
      pool.exhausted = true;
      return;
    }
    ++pool.provisions;
    bool done = false;
    with(pool, [&] { done = provide_from_region(pool, chunk); });
    pool.exhausted = !done && !(settings_.steal && steal(pool, chunk));
  }

  // Of a heap without private pools.
  Chunk* take_shared(std::size_t chunk) noexcept {
    Chunk* found = nullptr;
    lock_.run([&] { found = free_.take(chunk); });
    return found;
  }
  void give_shared(Chunk* chunk) noexcept {
    lock_.run([&] { free_.give(chunk); });
  }

  // Around a fork, by the thread that forks.
  // The guards first, as everywhere; again those of pools that came meanwhile.
  void before_fork() noexcept {
    Pool* held = nullptr;
    for (;;) {
      Pool* const newest = all_.load(std::memory_order_acquire);  // manager.A
      if (settings_.steal)
        for (Pool* pool = newest; pool != held; pool = pool->older) pool->guard.lock();
      held = newest;
      lock_.lock();
      if (all_.load(std::memory_order_relaxed) == held) return;  // relaxed: the lock orders
      lock_.unlock();
    }
  }
  void after_fork() noexcept {
    if (settings_.steal)
      for (Pool* pool = all_.load(std::memory_order_relaxed); pool != nullptr; pool = pool->older)  // relaxed: as above
        pool->guard.unlock();
    lock_.unlock();
  }
  sync::ElidedLock::Counts sections() const noexcept { return lock_.counts(); }
  std::size_t free_bytes() const noexcept { return free_.bytes(); }
  void verify() const noexcept { free_.verify(); }

 private:
  // Runs f(), which uses a pool, so that no other thread does.
  template <class F>
  void with(Pool& pool, F&& f) noexcept {
    if (settings_.steal) pool.guard.lock();
    f();
    if (settings_.steal) pool.guard.unlock();
  }
  template <class F>
  void use(Pool& pool, bool in_attempt, F&& f) noexcept {
    if (!in_attempt) return with(pool, f);
    if (settings_.steal && pool.guard.held()) platform::transaction_abort<platform::kPoolHeld>();
    f();
  }

  // With the pool's guard.
  bool provide_from_region(Pool& pool, std::size_t chunk) noexcept {
    if (settings_.provision == Provision::block) return take_for(pool, chunk);
    lock_.run([&] { free_.give_all(pool.free); });
    const std::size_t doubled = std::max(pool.bytes * 2, chunk);
    if (take_for(pool, doubled)) {
      pool.bytes = doubled;
      return true;
    }
    return take_for(pool, chunk);
  }

  // A chunk of the first other pool that has one. Its owner's attempt aborts, as the guard is what it has read.
  bool steal(Pool& pool, std::size_t chunk) noexcept {
    // manager.A: acquire, with the release in make_pool(): a pool that is found is made.
    for (Pool* other = all_.load(std::memory_order_acquire); other != nullptr; other = other->older) {
      if (other == &pool) continue;
      Chunk* found = nullptr;
      with(*other, [&] { found = other->free.take(chunk); });
      if (found == nullptr) continue;
      touch(*found);
      with(pool, [&] { pool.free.give(found); });  // M2: the other one's guard is free again
      ++pool.steals;
      return true;
    }
    return false;
  }

  Pool* make_pool() noexcept {
    void* const room = platform::map_lazy(sizeof(Pool), {.huge_pages = false});
    if (room == nullptr) return nullptr;
    Chunk** const index = make_index();
    if (index == nullptr) {
      platform::unmap(room, sizeof(Pool));
      return nullptr;
    }
    Pool* const pool = ::new (room) Pool;
    pool->index = index;
    pool->free.use_index(region_, index);
    // With the lock, so that no pool comes while a fork holds all guards.
    lock_.run([&] {
      pool->older = all_.load(std::memory_order_relaxed);  // relaxed: the lock orders
      // manager.A (publishes): without it a thief could find a pool whose list is not made yet.
      all_.store(pool, std::memory_order_release);
    });
    return pool;
  }
  Chunk** make_index() noexcept {
    return static_cast<Chunk**>(platform::map_lazy((settings_.limit_bytes / FirstFit::kPieceBytes + 1) * sizeof(Chunk*),
                                                   {.huge_pages = false}));
  }
  void fill(Pool& pool, std::size_t bytes) noexcept {
    const std::size_t whole = std::max(kChunkBytesMin, bytes & ~(kAlignment - 1));
    with(pool, [&] {
      if (take_for(pool, whole)) pool.bytes = whole;
    });
  }

  // Moves a chunk from the region to a pool, with its guard.
  bool take_for(Pool& pool, std::size_t bytes) noexcept {
    Chunk* found = nullptr;
    lock_.run([&] { found = free_.take(bytes); });
    if (found == nullptr) return false;
    touch(*found);
    pool.free.give(found);
    return true;
  }

  // A hardware attempt that meets a page for the first time aborts; a long pool is left to its own first touch.
  static void touch(Chunk& chunk) noexcept {
    constexpr std::size_t kTouchedMax = std::size_t{1} << 20;
    for (std::size_t at = sizeof(Chunk); at < std::min(chunk.bytes, kTouchedMax); at += platform::kPageBytes)
      *reinterpret_cast<volatile std::byte*>(chunk.start() + at) = std::byte{0};
  }

  Settings settings_;
  std::byte* region_ = nullptr;
  alignas(platform::kApartBytes) sync::ElidedLock lock_;
  FirstFit free_;         // with the lock, or in a transaction that has seen it free
  Pool* left_ = nullptr;  // likewise
  std::atomic<unsigned> threads_{0};
  std::atomic<Pool*> all_{nullptr};  // every pool that was made; none is unmade
};

}  // namespace loam::heap::pool
