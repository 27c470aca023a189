// The settings of a heap, its statistics, and the errors that a program can handle.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace loam::gc {

struct Backend;

struct Settings {
  // All memory: the nursery, both halves of the old generation, large objects and, with charge_logs, logs outside of
  // the heap.
  std::size_t memory_bytes = std::size_t{64} << 20;
  std::size_t nursery_bytes = 0;                     // 0: an eighth of the memory, 4 MiB at most
  std::size_t buffer_bytes = std::size_t{32} << 10;  // of the nursery that a thread takes at a time
  bool charge_logs = true;                           // false: the paper's accounting, in which such logs are free
  const Backend* backend = nullptr;                  // another collector (backend.hpp); null: ours
  // Tests: a collection at every n-th allocation; 0: only when the nursery is full.
  unsigned collect_every = 0;
  bool always_full = false;  // each collection collects the old generation too
};

// Objects of this size or more have pages of their own and do not move.
inline constexpr std::size_t kLargeBytes = std::size_t{16} << 10;

// The most memory of a heap, and the most bytes of an object: with it, no sum of sizes overflows.
inline constexpr std::size_t kMemoryMost = std::size_t{1} << 46;

// The live objects and the request do not fit into the heap's memory. Thrown by allocations and by accesses that log.
struct OutOfMemory : std::exception {
  // enough: memory_bytes of a heap that would have room
  OutOfMemory(std::size_t requested, std::size_t live, std::size_t logs, std::size_t memory,
              std::size_t enough) noexcept;
  const char* what() const noexcept override { return text_.data(); }

  // requested: ~0 if the size of an array has no 64 bits. enough: more than kMemoryMost if no heap would have room; at
  // most memory_bytes if the system refused memory that the heap has room for.
  std::size_t requested_bytes, live_bytes, log_bytes, memory_bytes, enough_bytes;

 private:
  std::array<char, 256> text_{};
};

// Durations in buckets of powers of two of nanoseconds. All zero bytes are an empty one.
class Durations {
 public:
  void add(std::uint64_t ns) noexcept {
    ++counts_[static_cast<std::size_t>(std::bit_width(ns))];
    ++count_;
    sum_ns_ += ns;
    if (ns > max_ns_) max_ns_ = ns;
  }
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t sum_ns() const noexcept { return sum_ns_; }
  std::uint64_t max_ns() const noexcept { return max_ns_; }
  const std::array<std::uint64_t, 65>& counts() const noexcept { return counts_; }  // [i]: of i bits

 private:
  std::array<std::uint64_t, 65> counts_{};
  std::uint64_t count_ = 0, sum_ns_ = 0, max_ns_ = 0;
};

// Cumulative; read while the world is stopped or no other thread uses the heap.
struct Statistics {
  std::uint64_t minor = 0, full = 0;
  std::uint64_t collector_cpu_ns = 0;
  Durations pauses;                                        // from the stop to the resumption, without the way to it
  Durations time_to_safepoint;                             // from the request until the last thread has stopped
  std::uint64_t copied_bytes = 0, copied_chunk_bytes = 0;  // all; of these log chunks
  std::uint64_t visited_entries = 0, dropped_dead = 0, dropped_duplicates = 0, dropped_subsumed = 0;
  std::uint64_t finalized = 0, weak_cleared = 0;
  std::uint64_t allocated_bytes = 0, allocated_chunk_bytes = 0;  // from the nursery and as large ones; of these chunks
  std::uint64_t live_bytes_max = 0;                              // after a full collection
  std::uint64_t log_bytes_max = 0;                               // of logs outside of the heap, charged at one time
  std::uint64_t log_bytes_at_full_max = 0;                       // the same, at the start of a full collection
  std::uint64_t returned_log_bytes = 0;                          // what collections returned to the system, in total
};

}  // namespace loam::gc
