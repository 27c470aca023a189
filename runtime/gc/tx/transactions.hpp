// Transactions: the data that all transactions of a heap share: the clock, the store of logs, which transaction runs
// alone, and memory in the limbo.
#pragma once

#include "runtime/gc/heap.hpp"
#include "runtime/gc/logs/store.hpp"
#include "runtime/gc/os_vector.hpp"
#include "runtime/gc/tx/ownership.hpp"
#include "runtime/gc/tx_settings.hpp"
#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace loam::gc {

class Transaction;

class Transactions {
 public:
  Transactions(Heap& heap, const TxSettings& settings);
  ~Transactions();
  Transactions(const Transactions&) = delete;
  Transactions& operator=(const Transactions&) = delete;

  const TxSettings& settings() const noexcept { return settings_; }
  Heap& heap() noexcept { return heap_; }
  LogStore& store() noexcept { return *store_; }            // of update entries
  LogStore& free_store() noexcept { return *free_store_; }  // of read and undo entries
  TxStatistics statistics();
  std::uint64_t chunk_waits() const noexcept;  // how often the dedicated heap's lock was held by another thread

 private:
  // One object in three files: all transactions, one, and the part of one that gives memory back. The clock and what
  // follows it are read in every attempt.
  friend class Transaction;
  friend class TransactionNursery;

  struct Limbo {
    Mutator::Piece piece;
    std::uint64_t epoch;
  };

  unsigned add(Transaction& transaction);
  void remove(Transaction& transaction, unsigned number);

  Heap& heap_;
  const TxSettings settings_;
  LogStore *store_, *free_store_;
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> clock_{1};
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> alone_{0};  // 1 + number of the one that runs alone
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> epoch_{1};  // aborts that left memory in limbo, and 1
  std::mutex mutex_;
  OsVector<Transaction*> running_;  // by number; null: the number is free
  OsVector<Limbo> limbo_;
  TxStatistics ended_;
};

}  // namespace loam::gc
