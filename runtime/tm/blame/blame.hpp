// blame: the data by which a blame run finds the cause of every abort. Only the second instantiation of each algorithm
// calls it (Algorithm<true>); timing runs pay nothing.
//   Block map   which block each 16-byte granule belongs to. Transactional malloc and note_block() fill it.
//   Trail       the words that commits wrote last, per ownership record. A record's version only tells that the stripe
//               was written; the trail tells which word it was.
// Both lie in OS pages and are bounded. The trail keeps nine words per record in 2^20 cells. If two records collide,
// the later one takes the cell, and the next abort on the other one is `unknown`.
#pragma once

#include "runtime/tm/types.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::tm::blame {

// Where an access was made, as a return address; nullptr: not known (explain.hpp).
using Site = const void*;

// The write that caused a conflict: of the words that were written, the one closest to the word that was accessed.
struct Suspect {
  AbortCause cause = AbortCause::unknown;
  const Word* word = nullptr;  // nullptr: not known
  Site site = nullptr;         // of the write
  unsigned slot = 0;           // of the writing thread
  bool locked = false;         // not committed yet: its record was met locked
};

// Maps block map and trail. Called by configure() when blame is asked for.
void start() noexcept;

// A block of `bytes` starts at `start`. Blocks of 8 bytes or less that share a granule with another are counted
// instead.
void note_block(const void* start, std::size_t bytes) noexcept;

// Commit `version` of the calling thread writes `word`, which `record` guards. Called before the record is released.
void note_write(const Orec& record, const Word* word, std::uint64_t version) noexcept;

// Where the known block that `address` lies in starts, or nullptr.
const void* block_start(const void* address) noexcept;

// The cause of a conflict between two words under the mapping in use.
// returns unknown if both lie in one stripe and the block of one is not known
AbortCause relation(const Word* mine, const Word* theirs) noexcept;

// The write because of which `record`, which guards `mine`, is newer than `snapshot`: of the words that later commits
// wrote, the closest one. Its cause is unknown if the trail no longer has them
Suspect suspect_of_version(const Orec& record, const Word* mine, std::uint64_t snapshot) noexcept;

// The number of small blocks that share a granule with another one (8 bytes or less), so causes cannot separate them.
std::uint64_t blocks_not_separable() noexcept;

// The closer of two causes: same word before same block before other block before other stripe before unknown.
constexpr AbortCause closer(AbortCause a, AbortCause b) noexcept {
  static_assert(AbortCause::same_word < AbortCause::same_block && AbortCause::same_block < AbortCause::other_block &&
                AbortCause::other_block < AbortCause::other_stripe && AbortCause::other_stripe < AbortCause::unknown);
  return a < b ? a : b;
}
inline const Suspect& closer(const Suspect& a, const Suspect& b) noexcept { return b.cause < a.cause ? b : a; }

}  // namespace loam::tm::blame
