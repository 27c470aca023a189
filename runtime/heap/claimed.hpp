// Claimed: batches that this thread has taken out of the inboxes of other heaps, to allocate from them.
//   Blocks that are freed for a thread which sleeps lie in its inboxes: the thread does not look there, and until here
//   nobody else did. A thread whose slabs have no block of a class to give would take new memory while they lie there.
//   It claims them first: the whole inbox of the class, in one exchange, if the inbox holds so much that its owner is
//   not looking (Arrivals::are_neglected()). Example: a thread makes 128 MiB of blocks and waits, another frees them and
//   makes as many: together they need 128 MiB, not 256.
//   Source: mimalloc 3, whose full slabs lose their owner until a thread that frees claims them. Here the slab stays with
//   its owner, for which the blocks are out as before: a free of one is a free of a block of another heap, and no fast
//   path changes.
//   Cost: a batch is relinked when it serves, one store for each block. When slabs are made, a look at some inboxes.
//   When not: blocks serve in their class only; the memory of one class does not become that of another.
//   C1 the batches of a class are of one owner, linked and marked as when they were sent (R1, R3 in remote.hpp).
#pragma once

#include "runtime/heap/arrivals.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/remote.hpp"
#include "runtime/heap/size_classes.hpp"

#include <array>

namespace loam::heap {

template <SizeClasses Classes>
class Claimed {
 public:
  bool empty(unsigned c) const noexcept { return claims_[c].chain.empty(); }

  // What the owner's inbox of the class held. Only where nothing is left of what was claimed before.
  void add(unsigned c, Chain chain, Key owner) noexcept { claims_[c] = {chain, owner}; }

  // The next batch, linked with the borrower's key and marked with the owner's (W1 in borrowed.hpp); none where empty.
  BlockList take(unsigned c, Key borrower) noexcept {
    if (empty(c)) return {nullptr, 0};
    const Key owner = claims_[c].owner;
    const Batch batch = claims_[c].chain.pop(owner, Arrivals<Classes>::place_of(c));
    for (FreeBlock *block = batch.first, *next; block != nullptr; block = next) {
      next = next_of(block, owner);
      link_to(block, next, borrower);
    }
    return batch;
  }

  // Sends what is left to its owner. word_of(owner, c): of the units in which the owner's blocks of the class lie
  template <class WordOf, class Send>
  void send_back(unsigned c, WordOf word_of, Send send) noexcept {
    Claim& claim = claims_[c];
    while (!claim.chain.empty())
      send(word_of(claim.owner, c), claim.chain.pop(claim.owner, Arrivals<Classes>::place_of(c)));
  }

  // visit(batch, owner's key): nullptr, or what ends the walk and is returned.
  template <class Visit>
  const char* for_each(unsigned c, Visit visit) const noexcept {
    const Claim& claim = claims_[c];
    return claim.chain.for_each(Arrivals<Classes>::place_of(c),
                                [&](const Batch& batch) { return visit(batch, claim.owner); });
  }

 private:
  struct Claim {
    Chain chain;
    Key owner;
  };
  std::array<Claim, Classes::kClasses> claims_{};
};

}  // namespace loam::heap
