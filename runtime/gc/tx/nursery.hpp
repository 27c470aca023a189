// TransactionNursery: an abort frees the memory that the attempt allocated (paper 002, section 4.2).
//   Objects of a committed attempt simply stay in the nursery: the paper's "relabelling" costs nothing. An abort resets
//   the bump pointer, a nested abort to the start of the nested attempt; whole buffers go to a list for all threads. If
//   there was a collection meanwhile, it has moved the older objects: then only memory allocated after it is freed.
//   Limbo  The paper claims that no other transaction sees such objects before the commit. This is wrong for reads that
//          are not validated at once: another transaction may have read a reference from an object that the aborted one
//          had written, and still use it. So without opacity the memory waits until every transaction has ended that
//          ran at the abort. With opacity no transaction uses such a reference, because load() checks the word once
//          more.
//   Chunks of logs and finalizable objects outlive the attempt: they lie in the nursery, but in no buffer.
//   Roots of the aborting thread that were set inside of the attempt, and outlive it, become null.
#pragma once

#include "runtime/gc/mutator.hpp"

#include <cstddef>

namespace loam::gc {

class Transaction;

class TransactionNursery {
 public:
  static Mutator::Mark mark(Mutator& mutator, bool outermost) noexcept;
  static void end(Mutator& mutator) noexcept;
  // After the undo log was applied and the Locals of the level are gone.
  static void reset(Transaction& transaction, const Mutator::Mark& mark, std::size_t first_update);
  // Called while the world is stopped, before the collection empties the nursery.
  static void forget(Transaction& transaction) noexcept;
  // Called when a transaction has ended: frees the memory that waited only for it.
  static void release_ripe(Transaction& transaction);
};

}  // namespace loam::gc
