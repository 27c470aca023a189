// dedicated_store: chunks of one size, of all logs of all threads, from a free list outside of the collected heap.
//   Source  paper 002, section 4.3. The first chunk of each log is kept; the others return to the list when the
//           transaction ends. Every kTrimEvery-th end returns half of the free chunks to the system; a collection that
//           needs room returns all of them.
//   The list is a spin lock with a stack, or, with lock_free, a stack of indices whose head counts its changes (against
//   ABA). Links are stored outside of the chunks, so that the pages of a free chunk can be returned.
//   Cost  a chunk: a lock, or a compare-and-swap, and a charge to the heap's memory where it is backed anew.
#pragma once

#include "runtime/gc/logs/store.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <atomic>
#include <cstdint>

namespace loam::gc {

// Free chunks by their numbers.
class FreeChunks {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  FreeChunks(std::uint32_t most, bool lock_free);
  ~FreeChunks();
  FreeChunks(const FreeChunks&) = delete;
  FreeChunks& operator=(const FreeChunks&) = delete;

  void push(std::uint32_t chunk) noexcept;
  std::uint32_t pop() noexcept;                                                            // kNone: it is empty
  std::uint64_t waits() const noexcept { return waits_.load(std::memory_order_relaxed); }  // relaxed: a count

 private:
  // bits 63..32: changes so far   bits 31..0: the chunk on top
  static constexpr std::uint64_t with(std::uint64_t head, std::uint32_t top) noexcept {
    return ((head >> 32) + 1) << 32 | top;
  }
  void lock() noexcept;

  const std::uint32_t most_;
  const bool lock_free_;
  std::atomic<std::uint32_t>* below_;
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> head_{kNone};
  alignas(platform::kApartBytes) sync::SpinLock lock_;
  std::atomic<std::uint64_t> waits_{0};
};

class DedicatedStore : public LogStore {
 public:
  DedicatedStore(Heap& heap, std::size_t chunk_bytes, bool lock_free);
  ~DedicatedStore() override;

  void open(LogBase& log, Mutator& mutator) override;
  void grow(LogBase& log, Mutator& mutator) override { add_chunk(log, mutator); }
  // returns the chunk that makes room; null if the log has room without one
  LogChunk* add_chunk(LogBase& log, Mutator& mutator);
  void close(LogBase& log) noexcept override { shrink(log, 0); }
  void ended(LogBase& log) noexcept override;
  std::size_t give_back(LogBase&) noexcept override { return give_back_free(most_); }

  std::uint64_t waits() const noexcept { return backed_.waits(); }
  std::uint64_t backed_chunks() const noexcept { return backed_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kAddresses = std::size_t{4} << 30;
  static constexpr std::uint32_t kTrimEvery = 256;

  void shrink(LogBase& log, std::size_t kept) noexcept override;
  LogChunk* chunk_at(std::uint32_t number) const noexcept {
    return reinterpret_cast<LogChunk*>(start_ + number * chunk_bytes_);
  }
  // Gives the memory of at most `most` free chunks back to the system. returns its size, still charged to the heap
  std::size_t give_back_free(std::uint32_t most) noexcept;

  Heap& heap_;
  const std::size_t chunk_bytes_;
  const std::uint32_t most_;
  std::byte* start_;
  FreeChunks backed_, given_back_;
  std::atomic<std::uint32_t> fresh_{0};  // chunks that were never used begin here
  std::atomic<std::uint32_t> free_{0};   // in backed_
  std::atomic<std::uint32_t> backed_count_{0};
  std::atomic<std::uint32_t> ends_{0};
};

}  // namespace loam::gc
