#include "runtime/gc/logs/dedicated_store.hpp"

#include "runtime/gc/heap.hpp"
#include "runtime/gc/tx_settings.hpp"
#include "runtime/platform/pages.hpp"

#include <new>

namespace loam::gc {

FreeChunks::FreeChunks(std::uint32_t most, bool lock_free)
    : most_(most),
      lock_free_(lock_free),
      below_(static_cast<std::atomic<std::uint32_t>*>(
          platform::map_lazy_or_die(most * sizeof(std::atomic<std::uint32_t>), "the free chunks of logs"))) {}

FreeChunks::~FreeChunks() { platform::unmap(below_, most_ * sizeof(std::atomic<std::uint32_t>)); }

void FreeChunks::lock() noexcept {
  if (lock_.try_lock()) return;
  waits_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
  lock_.lock();
}

void FreeChunks::push(std::uint32_t chunk) noexcept {
  if (!lock_free_) {
    lock();
    // relaxed: the lock orders.
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    below_[chunk].store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    head_.store(with(head, chunk), std::memory_order_relaxed);
    lock_.unlock();
    return;
  }
  std::uint64_t head = head_.load(std::memory_order_relaxed);  // relaxed: the compare-and-swap decides
  do {
    below_[chunk].store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);  // relaxed: free_chunks.A
    // free_chunks.A: release publishes the link, and what the last owner left, to the acquire in pop().
  } while (!head_.compare_exchange_weak(head, with(head, chunk), std::memory_order_release, std::memory_order_relaxed));
}

std::uint32_t FreeChunks::pop() noexcept {
  if (!lock_free_) {
    lock();
    const std::uint64_t head = head_.load(std::memory_order_relaxed);  // relaxed: the lock orders
    const auto top = static_cast<std::uint32_t>(head);
    if (top != kNone) head_.store(with(head, below_[top].load(std::memory_order_relaxed)), std::memory_order_relaxed);
    lock_.unlock();
    return top;
  }
  std::uint64_t head = head_.load(std::memory_order_acquire);  // free_chunks.A
  for (;;) {
    const auto top = static_cast<std::uint32_t>(head);
    if (top == kNone) return kNone;
    // relaxed: if another thread has taken the chunk and changed its link meanwhile, the count in the head has changed.
    const std::uint32_t below = below_[top].load(std::memory_order_relaxed);
    if (head_.compare_exchange_weak(head, with(head, below), std::memory_order_acquire, std::memory_order_acquire))
      return top;  // free_chunks.A
  }
}

DedicatedStore::DedicatedStore(Heap& heap, std::size_t chunk_bytes, bool lock_free)
    : heap_(heap),
      chunk_bytes_(chunk_bytes),
      most_(static_cast<std::uint32_t>(kAddresses / chunk_bytes)),
      start_(static_cast<std::byte*>(platform::map_lazy_or_die(kAddresses, "the heap of logs", {.huge_pages = false}))),
      backed_(most_, lock_free),
      given_back_(most_, lock_free) {}

DedicatedStore::~DedicatedStore() {
  heap_.discharge_logs(std::size_t{backed_count_.load(std::memory_order_relaxed)} * chunk_bytes_);
  platform::unmap(start_, kAddresses);
}

void DedicatedStore::open(LogBase& log, Mutator& mutator) {
  set_per_chunk(log, (chunk_bytes_ - sizeof(LogChunk)) / log.entry_bytes());
  grow(log, mutator);
}

LogChunk* DedicatedStore::add_chunk(LogBase& log, Mutator& mutator) {
  mutator.safepoint();
  if (has_room(log)) return nullptr;
  std::uint32_t number = backed_.pop();
  if (number != FreeChunks::kNone) {
    free_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a count
  } else {
    try {
      heap_.charge_logs(mutator, chunk_bytes_);
    } catch (const OutOfMemory&) {
      if (has_room(log)) return nullptr;  // the collections have removed duplicates from this log
      throw;
    }
    backed_count_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
    number = given_back_.pop();
    if (number == FreeChunks::kNone) number = fresh_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
    if (number >= most_) throw LogsTooLong(std::size_t{number} * chunk_bytes_, kAddresses);
  }
  if (has_room(log)) {
    backed_.push(number);
    free_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
    return nullptr;
  }
  auto* const chunk = ::new (chunk_at(number)) LogChunk;
  append(log, chunk);
  return chunk;
}

void DedicatedStore::shrink(LogBase& log, std::size_t kept) noexcept {
  auto& all = chunks(log);
  while (all.size() > kept) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<std::byte*>(all.pop()) - start_);
    backed_.push(static_cast<std::uint32_t>(at / chunk_bytes_));
    free_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
  }
}

void DedicatedStore::ended(LogBase&) noexcept {
  // relaxed, of both: counts
  if (ends_.fetch_add(1, std::memory_order_relaxed) % kTrimEvery != kTrimEvery - 1) return;
  if (const std::size_t bytes = give_back_free(free_.load(std::memory_order_relaxed) / 2); bytes != 0)
    heap_.discharge_logs(bytes);
}

std::size_t DedicatedStore::give_back_free(std::uint32_t most) noexcept {
  std::size_t bytes = 0;
  for (; most != 0; --most) {
    const std::uint32_t number = backed_.pop();
    if (number == FreeChunks::kNone) break;
    free_.fetch_sub(1, std::memory_order_relaxed);          // relaxed: a count
    backed_count_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a count
    platform::purge(chunk_at(number), chunk_bytes_);
    given_back_.push(number);
    bytes += chunk_bytes_;
  }
  return bytes;
}

}  // namespace loam::gc
