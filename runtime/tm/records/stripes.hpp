// stripes: a second word for each stripe, beside its ownership record. In OS pages; made when the first thread
// attaches, if the algorithm needs it.
//   Write locks      (swisstm) one word per stripe: 0, or the owner's locked word. Backed when touched. Shadow records leave no address
//                    space for as many write locks. Then stripes 2^36 apart (1 TiB) share a write lock.
//   Read indicators  (two-phase) one bit per stripe and thread: the thread is reading the stripe, whose record is marked
//                    (algorithms/parts/visible_reads.hpp; others are shown by a byte, read_bytes.hpp). 128 KiB per thread
//                    for 2^20 records, 8 MiB for the largest table. With shadow records, stripes 2^32 apart (64 GiB)
//                    share a bit: 512 MiB of addresses per thread, backed when touched, one page per 512 KiB of data.
//   Sharing a lock or a bit causes false conflicts and nothing worse.
#pragma once

#include "runtime/reclaim/epoch.hpp"
#include "runtime/tm/types.hpp"

#include <array>
#include <atomic>

namespace loam::tm::stripes {

inline constexpr unsigned kWriteLockBitsMax = 36, kIndicatorBits = 32;

struct WriteLocks {
  Orec* base = nullptr;
  std::uint64_t mask = 0;

  Orec& of(std::uint64_t stripe) const noexcept { return base[stripe & mask]; }
  // Backs those of a table, which no transaction has seen yet.
  void touch() const noexcept;
};
extern constinit WriteLocks write_locks;

// Makes them if they are not there. Ends the program where the system refuses the addresses.
void make_write_locks() noexcept;

// 64 stripes of one thread.
using Indicators = std::atomic<std::uint64_t>;

constexpr std::uint64_t indicators_of(std::uint64_t stripe) noexcept {
  static_assert(kIndicatorBits == 32);
  return static_cast<std::uint32_t>(stripe) / 64;
}
constexpr std::uint64_t indicator_bit(std::uint64_t stripe) noexcept { return std::uint64_t{1} << (stripe % 64); }

struct Readers {
  std::array<std::atomic<Indicators*>, reclaim::Domain::kSlots> of_slot{};
  std::atomic<unsigned> end{0};  // one past the last slot that ever had indicators
};
extern constinit Readers readers;

// The indicators of a slot, once per slot. Ends the program where the system refuses the addresses.
Indicators* make_indicators(unsigned slot) noexcept;

}  // namespace loam::tm::stripes
