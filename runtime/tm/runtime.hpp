// The state that all transactions of the process share.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/reclaim/epoch.hpp"
#include "runtime/tm/records/mapping.hpp"
#include "runtime/tm/types.hpp"

#include <atomic>
#include <cstdint>

namespace loam::tm {

struct AlgorithmDescription;
struct Hooks;

// Data that every begin or commit reads, and that is hardly ever written.
struct alignas(platform::kApartBytes) Shared {
  RecordMap map;  // made for the first transaction, if its algorithm has records
  // Not 0: a begin must do more than announce itself (lifecycle.hpp).
  std::atomic<std::uint32_t> slow_begin{0};
  // Not 0: a thread sleeps until a commit (waiting.hpp).
  std::atomic<std::uint32_t> sleepers{0};
  Config config;
  std::atomic<const Hooks*> algorithm{nullptr};  // the one of this process, from the first transaction on
};
extern constinit Shared shared;

// The version clock: every commit that writes advances it, every begin reads it. Alone on its lines.
struct alignas(platform::kApartBytes) Clock {
  std::atomic<std::uint64_t> now{1};
};
extern constinit Clock version_clock;

// The readers of memory that transactions free.
extern constinit reclaim::Domain domain;

// Chooses mapping and blame. Call before the first transaction of the process; without a call the defaults of Config
// hold. Ends the program if a value is out of range or a transaction has run.
void configure(const Config& config) noexcept;

// configure() with the defaults unless it has been called.
void configure_once() noexcept;

// Maps the records and backs their table, before the first transaction: for who times the first transactions, in which
// page faults would count. Otherwise they are mapped by the first transaction, and backed as they are used.
void touch_records() noexcept;

// What the first transaction needs whatever its algorithm, made when the program is loaded: each page that it touches
// first costs two or three microseconds. May be called again, and after transactions of static objects' constructors.
void prepare_setup() noexcept;

// Lock out configure() and forks. A fork must not happen during a configure().
void lock_setup() noexcept;
void unlock_setup() noexcept;

// The same as configure(), for a caller that has called lock_setup().
void configure_while_locked(const Config& config) noexcept;

// Ends the program if a transaction of the algorithm `wanted` begins in a process whose transactions use `used`: the
// two would not notice each other's accesses.
void check_same_algorithm(const AlgorithmDescription& used, const AlgorithmDescription& wanted) noexcept;

// Frees all blocks that transactions have freed and that no attempt can still read, those of ended threads included.
// Call it outside of transactions. returns how many blocks of the calling thread still wait
std::size_t quiesce() noexcept;

// This thread's cumulative counts.
Statistics statistics() noexcept;

// The commits of all threads so far; a moment old where they run.
std::uint64_t commits_so_far() noexcept;

// Sum over all threads that ever ran a transaction; exact once they have stopped.
Statistics statistics_of_all() noexcept;

}  // namespace loam::tm
