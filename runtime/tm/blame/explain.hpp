// explain: who aborts whom. A sample of the conflicts of a blame run, each with both words, their blocks and the source
// lines that accessed them; and a sample of what whole transactions read and wrote.
//   Conflicts   Every n-th abort of a thread is recorded. Buffers are bounded: a full one drops every second entry, and
//               from then on half as many are recorded, so that the entries are spread evenly over the run (Sample).
//   Sites       A site is the return address of an access. Those of the running attempt are kept in order. A table that
//               other threads may read holds what a thread wrote last, and where: it gives the site of a lock's owner,
//               and the trail (blame.hpp) takes the sites of committed writes from it. In this table a later write may
//               replace another one, whose site other threads then cannot find. The thread itself still finds it among
//               the accesses of its attempt.
//   Blocks      bounds, allocating thread, ordinal and site of the block around an address, in 2^20 cells. If two
//               blocks collide, one takes the cell, and the other is reported without details.
//   Footprints  the words of a committed transaction. From pairs of them the lab computes what placement alone would do
//               under another mapping (docs/internals/explain.md).
//   Cost        a blame run that explains: a call and two stores per access. A blame run that does not: a test per
//               access. A timing run: nothing; it has none of this code.
//   Nothing here uses the process's allocator.
// Memory orders; in brackets the failure without the pair
//   explain.A  table of last writes: word = 0, then site(release), then word(release), or the site alone where the
//              word stands / word(acquire), site(acquire), then word(relaxed) again  [the site of another word]
//   explain.B  log of a thread(release) / another thread's look at it(acquire)  [an unfinished log]
#pragma once

#include "runtime/platform/compiler.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::tm::explain {

// Where an access or an allocation was made: the return address of the runtime's call there. nullptr: not known. Of
// parties whose word is known only that of an owner may be unknown, one whose record was met locked: it has put another
// word in the place of this one since. (And those of attempts with more than 2^20 accesses.)
using Site = blame::Site;

struct Block {
  const void* start = nullptr;  // nullptr: not known
  std::uint64_t bytes = 0;      // 0, and no more is known, where its details were taken over
  std::uint64_t ordinal = 0;    // of the allocating thread's transactional blocks; 0: made outside of transactions
  unsigned thread = 0;          // slot of the allocating thread
  Site site = nullptr;
};

struct Party {
  const Word* word = nullptr;  // nullptr: not known
  Site site = nullptr;         // mine: of the access that lost; theirs: of the write that won
  unsigned thread = 0;         // slot
  Block block;
};

struct Conflict {
  Party mine, theirs;
  AbortCause cause;
  bool locked;           // met locked; false: found newer than the snapshot
  unsigned shift;        // of the mapping at that time
  std::uint64_t record;  // index of the ownership record
};

struct Touched {
  const Word* word;
  bool written;
  const void* block;  // nullptr: not known
  std::uint32_t bytes;
};

// What a transaction read and wrote, in order, repetitions included. whole: false if it was too long to be kept whole
struct Footprint {
  std::span<const Touched> words;
  unsigned thread;
  bool whole;
};

// Every how many aborts of a thread one is kept; 0: none, nothing is explained.
extern constinit unsigned every;

// Chooses it. Call before the first transaction of the process, which has to be one of a blame run.
void start(unsigned every_nth) noexcept;

// -- called by the driver, accesses and memory of blame instantiations ------------------------------------------------

void attempt_began(const Descriptor& d) noexcept;
void attempt_committed(const Descriptor& d) noexcept;

// Calls of these leave their return address.
LOAM_CALLED_AS_WRITTEN void note_read(const Descriptor& d, const void* address) noexcept;
LOAM_CALLED_AS_WRITTEN void note_write(const Descriptor& d, const void* address) noexcept;
LOAM_CALLED_AS_WRITTEN void note_block(const void* start, std::size_t bytes) noexcept;

[[gnu::always_inline]] inline void began(const Descriptor& d) noexcept {
  if (every != 0) attempt_began(d);
}
[[gnu::always_inline]] inline void committed(const Descriptor& d) noexcept {
  if (every != 0) attempt_committed(d);
}
[[gnu::always_inline]] inline void read(const Descriptor& d, const void* address) noexcept {
  if (every != 0) note_read(d, address);
}
[[gnu::always_inline]] inline void write(const Descriptor& d, const void* address) noexcept {
  if (every != 0) note_write(d, address);
}
[[gnu::always_inline]] inline void allocated(const void* start, std::size_t bytes) noexcept {
  if (every != 0) note_block(start, bytes);
}

// Where the thread in `slot` wrote `word` last; nullptr if another word has its place.
Site site_of_write(unsigned slot, const Word* word) noexcept;
// The same of the calling thread's attempt, which has written the word: known, unless it made too many accesses.
Site site_of_own_write(unsigned slot, const Word* word) noexcept;

// The attempt is about to abort because of `suspect`, having read or been about to touch `mine` (both may be null).
void conflict(const Descriptor& d, const Orec& record, const Word* mine, const blame::Suspect& suspect) noexcept;

// -- what was kept; exact once the threads have stopped ---------------------------------------------------------------

// weight: how many aborts of its thread the conflict stands for
using VisitConflict = void (*)(void* context, const Conflict& conflict, std::uint64_t weight);
using VisitFootprint = void (*)(void* context, const Footprint& footprint, std::uint64_t weight);
void for_each_conflict(void* context, VisitConflict visit) noexcept;
void for_each_footprint(void* context, VisitFootprint visit) noexcept;

}  // namespace loam::tm::explain
