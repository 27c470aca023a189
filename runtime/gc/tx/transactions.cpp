#include "runtime/gc/tx/transactions.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/format.hpp"
#include "runtime/gc/backend.hpp"
#include "runtime/gc/checking.hpp"
#include "runtime/gc/logs/arena_store.hpp"
#include "runtime/gc/logs/dedicated_store.hpp"
#include "runtime/gc/logs/heap_store.hpp"
#include "runtime/gc/logs/unlogged_store.hpp"
#include "runtime/gc/tx/transaction.hpp"

namespace loam::gc {
namespace {

constexpr std::size_t kChunkLeast = 256;

LogStore* make_store(Heap& heap, const TxSettings& settings, Placement placement) {
  switch (placement) {
    case Placement::heap:
      return new HeapStore(settings.chunk_bytes);
    case Placement::dedicated:
      if (settings.checked_allocation) return new CheckingStore(heap, settings.chunk_bytes, settings.lock_free_chunks);
      return new DedicatedStore(heap, settings.chunk_bytes, settings.lock_free_chunks);
    case Placement::arena:
      return new ArenaStore(heap);
    case Placement::unlogged:
      return new UnloggedStore;
  }
  LOAM_FATAL("no such placement");
}

}  // namespace

LogsTooLong::LogsTooLong(std::size_t bytes, std::size_t most) noexcept : log_bytes(bytes), bytes_max(most) {
  base::format_to(std::span(text_).first(text_.size() - 1),
                  "a transaction's logs have {} bytes, at most {} (split it, or raise TxSettings::log_bytes_max)",
                  bytes, most);
}

Transactions::Transactions(Heap& heap, const TxSettings& settings) : heap_(heap), settings_(settings) {
  LOAM_CHECK(settings.chunk_bytes >= kChunkLeast && settings.chunk_bytes < kLargeBytes && settings.chunk_bytes % 8 == 0,
             "chunk_bytes={}: a multiple of 8 from {} to below {}", settings.chunk_bytes, kChunkLeast, kLargeBytes);
  if (const Backend* const backend = heap.settings().backend) {
    LOAM_CHECK(backend->serves_transactions(),
               "transactions: this backend collects when it likes, also while a log is half written");
    LOAM_CHECK(!settings.nursery, "TxSettings::nursery: a backend takes no memory back (set it to false)");
  }
  LOAM_CHECK(!settings.checked_allocation || settings.placement == Placement::dedicated,
             "TxSettings::checked_allocation: of logs in the dedicated heap only");
  const bool unlogged = settings.placement == Placement::unlogged;
  // The word of an owned object leads to its update entry, so update entries are logged even in the control.
  store_ = make_store(heap, settings, unlogged ? Placement::dedicated : settings.placement);
  free_store_ = unlogged ? make_store(heap, settings, Placement::unlogged) : store_;
}

Transactions::~Transactions() {
  for (const Transaction* const transaction : running_)
    LOAM_CHECK(transaction == nullptr, "Transactions end after each thread's Transaction");
  if (free_store_ != store_) delete free_store_;
  delete store_;
}

unsigned Transactions::add(Transaction& transaction) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < running_.size(); ++i)
    if (running_[i] == nullptr) {
      running_[i] = &transaction;
      return static_cast<unsigned>(i);
    }
  running_.push(&transaction);
  LOAM_CHECK(running_.size() <= kOwnersMax, "{} threads with transactions: at most {}", running_.size(), kOwnersMax);
  return static_cast<unsigned>(running_.size() - 1);
}

void Transactions::remove(Transaction& transaction, unsigned number) {
  const std::lock_guard lock(mutex_);
  ended_ += transaction.statistics();
  running_[number] = nullptr;
}

TxStatistics Transactions::statistics() {
  const std::lock_guard lock(mutex_);
  TxStatistics sum = ended_;
  for (const Transaction* const transaction : running_)
    if (transaction != nullptr) sum += transaction->statistics();
  return sum;
}

std::uint64_t Transactions::chunk_waits() const noexcept {
  const auto* const dedicated = dynamic_cast<const DedicatedStore*>(store_);
  return dedicated != nullptr ? dedicated->waits() : 0;
}

}  // namespace loam::gc
