// The words of the transactional memory: ownership records, abort causes, statistics, configuration.
#pragma once

#include "runtime/tm/abort_cause.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace loam::tm {

using Word = std::uint64_t;
inline constexpr std::size_t kWordBytes = sizeof(Word);

// An ownership record guards a stripe of 2^shift bytes:
//   free    bit 63 = 0   bits 62..0:  version, the clock value of the commit that wrote the stripe last
//   locked  bit 63 = 1   bits 62..48: slot of the owner
//                        bits 47..0:  address of the owner's first write entry of the stripe
// One unsigned comparison, record <= snapshot, answers "free and old enough".
using Orec = std::atomic<std::uint64_t>;

inline constexpr std::uint64_t kLockedBit = 1ULL << 63;
inline constexpr unsigned kEntryBits = 48;
inline constexpr std::uint64_t kEntryMask = (1ULL << kEntryBits) - 1;

constexpr std::uint64_t locked_word(unsigned slot, std::uint64_t entry) noexcept {
  return kLockedBit | (std::uint64_t{slot} << kEntryBits) | entry;
}
constexpr bool is_locked(std::uint64_t record) noexcept { return (record & kLockedBit) != 0; }
constexpr bool is_locked_by(std::uint64_t record, unsigned slot) noexcept {
  return (record >> kEntryBits) == (locked_word(slot, 0) >> kEntryBits);
}
constexpr unsigned owner_of(std::uint64_t record) noexcept {
  return static_cast<unsigned>((record & ~kLockedBit) >> kEntryBits);
}
constexpr std::uint64_t entry_of(std::uint64_t record) noexcept { return record & kEntryMask; }

static_assert(locked_word(0, 0) > kLockedBit - 1, "a locked word must exceed every version");
static_assert(is_locked_by(locked_word(3, 7), 3) && !is_locked_by(locked_word(3, 7), 2));
static_assert(is_locked_by(locked_word(1023, 5), 1023) && entry_of(locked_word(1023, 5)) == 5);

// The codes with which an attempt, or a part of one, returns to the driver.
//   restart  it aborted                        update  it has to write, so the read-only attempt must be repeated
//   wait     retry() was called: sleep until something that it has read changes
//   cancel   cancel() was called               serial  it has to run alone
//   again    restart() was called while the transaction ran alone
//   provide  an allocation needs memory that is provided outside of attempts (platform/provision.hpp)
// A part returns `restart` after a conflict that may concern only the part (algorithm.hpp: resume).
inline constexpr int kRestart = 1, kUpdate = 2, kWait = 3, kCancel = 4, kSerial = 5, kAgain = 6, kProvide = 7;

// Thrown to the caller of a transaction that was cancelled as a whole.
struct Cancelled {};

// How often transactions aborted before they committed: bucket i counts those with kAbortsBounds[i] aborts or more, but
// fewer than kAbortsBounds[i + 1].
inline constexpr std::array<std::uint64_t, 12> kAbortsBounds{0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 1024};

// Cumulative counts of one thread. attempts = commits + sum(aborts).
struct Statistics {
  std::uint64_t attempts = 0;
  std::uint64_t commits = 0;
  std::array<std::uint64_t, kAbortCauses> aborts{};
  // Buckets from one abort on; the first is kept at 0 and follows from commits (see Statistics::histogram).
  std::array<std::uint64_t, kAbortsBounds.size()> commits_after_aborts{};
  std::uint64_t hardware = 0;          // of the commits those of hardware attempts
  std::uint64_t serialised = 0;        // transactions that ran alone because they had aborted too often
  std::uint64_t scalable = 0;          // under auto: of the commits those of the scalable algorithm
  std::uint64_t switches = 0;          // under auto: changes of the algorithm that this thread made
  std::uint64_t blocks_allocated = 0;  // calls of the process's malloc, those of aborted attempts included
  std::uint64_t blocks_freed = 0;      // calls of its free, those that undo an attempt included

  std::uint64_t aborts_total() const noexcept {
    return std::accumulate(aborts.begin(), aborts.end(), std::uint64_t{0});
  }

  void count_commit_after(std::uint64_t aborts_before) noexcept {
    std::size_t bucket = 1;
    while (bucket + 1 < kAbortsBounds.size() && kAbortsBounds[bucket + 1] <= aborts_before) ++bucket;
    ++commits_after_aborts[bucket];
  }

  // Commits by the aborts before them; buckets as kAbortsBounds.
  std::array<std::uint64_t, kAbortsBounds.size()> histogram() const noexcept {
    auto counts = commits_after_aborts;
    counts[0] = commits - std::accumulate(counts.begin() + 1, counts.end(), std::uint64_t{0});
    return counts;
  }
};

enum class Mapping { table, shadow, hash };

// The contention manager: what an attempt does when it finds a record locked, and before its next try (contention.hpp).
enum class Manager { suicide, pure_suicide, delay, backoff, karma, timestamp };

// When plain code may use data that a committed transaction has unlinked.
//   none      after every attempt has ended that was running: an older one may still read the data, or write it back
//   commit    at once: each update commit waits for the attempts that began before it (docs/adr/0008)
//   shared    at once: commits share the wait, for machines with many cores (docs/adr/0036)
enum class Privatization { none, commit, shared };

inline constexpr unsigned kSerialiseAfter = 16;

struct Config {
  Mapping mapping = Mapping::table;
  unsigned shift = 5;          // log2 of the stripe in bytes; not of shadow records, which have 4
  unsigned records_log2 = 20;  // log2 of the number of records; not of shadow records
  bool adaptive = false;       // the two above are where tuning begins (tuning.hpp); not of shadow records
  bool blame = false;          // keep what the causes of aborts need
  Manager manager = Manager::suicide;
  Privatization privatization = Privatization::commit;
  // Aborts in a row after which a transaction runs alone (contention.hpp says which count); 0: never.
  unsigned serialise_after = kSerialiseAfter;
};

inline constexpr unsigned kShiftMin = 3, kShiftMax = 12;
inline constexpr unsigned kRecordsLog2Min = 10, kRecordsLog2Max = 26;
inline constexpr unsigned kShadowShift = 4;  // a granule of 16 bytes: no two blocks of more than 8 bytes share one

}  // namespace loam::tm
