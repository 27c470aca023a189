// TransactionNursery: what an attempt allocated is given back when it aborts (paper 002, section 4.2).
//   What a commit made is part of the nursery as everything else: "relabelling" costs nothing. An abort sets the bump
//   pointer back, nested ones to where they began; whole buffers go to a list for all threads. A collection in between
//   moved the older ones: then only what was allocated since then goes back.
//   Limbo  The paper's claim that nobody else sees such objects before the commit is wrong for reads that are not
//          checked: another transaction may have taken a reference out of an object that the aborted one had written,
//          and still hold it. So where reads are not opaque the memory waits until every transaction that ran at the
//          abort has ended. An opaque one never uses such a reference: load() looks at the word once more.
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
  // While the world is stopped: everything in the nursery goes.
  static void forget(Transaction& transaction) noexcept;
  // The transaction is over: what it alone kept waiting may go back.
  static void release_ripe(Transaction& transaction);
};

}  // namespace loam::gc
