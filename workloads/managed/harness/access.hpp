// How the workloads of this folder protect objects: builds of the same source.
//   LOAM_MANAGED_BY_TRANSACTIONS   object transactions
//   LOAM_MANAGED_BY_LOCK           one lock around each operation
//   LOAM_MANAGED_BY_NOTHING        one thread, or data that each thread has to itself
//   With transactions, and LOAM_MANAGED_CHECKED_ALLOCATION: each allocation looks whether it is for a log.
//   Session is the heap of a run; Worker is a thread's part of it; worker.atomically(body) runs body(access).
#pragma once

#include "runtime/gc/checking.hpp"
#include "runtime/gc/gc.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/managed/harness/plain_access.hpp"
#include "workloads/managed/harness/setup.hpp"

#include <mutex>
#include <optional>

namespace loam::workloads::managed {

#ifdef LOAM_MANAGED_BY_TRANSACTIONS
inline constexpr bool kTransactions = true, kLock = false;
#elif defined(LOAM_MANAGED_BY_LOCK)
inline constexpr bool kTransactions = false, kLock = true;
#else
inline constexpr bool kTransactions = false, kLock = false;
#endif

#ifdef LOAM_MANAGED_CHECKED_ALLOCATION
using WorkerMutator = gc::CheckingMutator;
using WorkerTransaction = gc::CheckingTransaction;
#else
using WorkerMutator = gc::Mutator;
using WorkerTransaction = gc::Transaction;
#endif

class Session {
 public:
  Session(const Options& options, std::size_t live_bytes) : heap(heap_settings(options, live_bytes)) {
    if constexpr (kTransactions) transactions.emplace(heap, tx_settings(options));
  }

  gc::TxStatistics tx_statistics() { return transactions ? transactions->statistics() : gc::TxStatistics{}; }
  std::uint64_t chunk_waits() const { return transactions ? transactions->chunk_waits() : 0; }

  gc::Heap heap;
  std::optional<gc::Transactions> transactions;
  std::mutex lock;
};

class Worker {
 public:
  explicit Worker(Session& session) : mutator(session.heap), session_(session), plain_(mutator) {
    if constexpr (kTransactions) transaction_.emplace(*session.transactions, mutator);
  }

  template <class F>
  auto atomically(F&& body) {
    if constexpr (kTransactions) {
      return gc::atomically(*transaction_,
                            [&](gc::Transaction& running) { return body(static_cast<WorkerTransaction&>(running)); });
    } else if constexpr (kLock) {
      if (!session_.lock.try_lock()) {
        gc::Mutator::Native native(mutator);
        session_.lock.lock();
      }
      const std::lock_guard guard(session_.lock, std::adopt_lock);
      return body(plain_);
    } else {
      return body(plain_);
    }
  }
  // Without a transaction, for set-up and checks by one thread.
  PlainAccess& plain() noexcept { return plain_; }

  WorkerMutator mutator;

 private:
  Session& session_;
  PlainAccess plain_;
  std::optional<WorkerTransaction> transaction_;
};

}  // namespace loam::workloads::managed
