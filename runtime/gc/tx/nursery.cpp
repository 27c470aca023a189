#include "runtime/gc/tx/nursery.hpp"

#include "runtime/base/check.hpp"
#include "runtime/gc/tx/sift.hpp"
#include "runtime/gc/tx/transaction.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace loam::gc {
namespace {

constexpr std::size_t kReturnedLeast = 1024;  // smaller pieces are not worth a place in the list

}  // namespace

Mutator::Mark TransactionNursery::mark(Mutator& mutator, bool outermost) noexcept {
  if (outermost) {
    mutator.kept_buffers_.clear();
    mutator.keeps_buffers_ = true;
  }
  return {mutator.kept_buffers_.size(), mutator.next_, mutator.heap().collections(), mutator.finalizable_.size()};
}

void TransactionNursery::end(Mutator& mutator) noexcept {
  mutator.keeps_buffers_ = false;
  mutator.kept_buffers_.clear();
}

void TransactionNursery::reset(Transaction& transaction, const Mutator::Mark& mark, std::size_t first_update) {
  Mutator& mutator = transaction.mutator_;
  Heap& heap = mutator.heap();
  Transactions& all = transaction.all_;
  // After a collection all objects in the nursery are younger than the collection, and so younger than this level.
  const bool moved = heap.collections() != mark.collections;
  auto& kept = mutator.kept_buffers_;
  const std::size_t first = moved ? 0 : mark.buffers;
  const bool in_current = !moved && kept.size() == first;
  std::byte* const from = in_current && mark.next != nullptr ? mark.next : mutator.buffer_;
  // The first part of the buffer in which this level began belongs to the outer level.
  Mutator::Piece outer{};
  if (!moved && !in_current && mark.next != nullptr) {
    outer = {kept[first].start, mark.next};
    kept[first].start = mark.next;
  }

  const auto is_given_back = [&](const void* object) {
    const auto* const at = static_cast<const std::byte*>(object);
    if (at >= from && at < mutator.next_) return true;
    return std::any_of(kept.begin() + first, kept.end(),
                       [&](const Mutator::Piece& piece) { return at >= piece.start && at < piece.end; });
  };
  for (LocalBase* local = mutator.newest_local(); local != nullptr; local = local->previous())
    if (is_given_back(local->slot())) local->slot() = nullptr;
  // An object that this level made may have been filled without undo entries. If a collection has moved it, or if it is
  // large, it lies outside of the nursery. It is dead, but it may be in the list of remembered objects. Then the next
  // collection would follow its references into memory that is freed here. The same holds for a finalizable object,
  // which lives until its finalizer has run.
  const auto forget = [&](Object* holder) {
    for_each_reference(*holder, [&](Object*& slot) {
      // relaxed: only this thread knows the objects that are freed here.
      const std::atomic_ref<Object*> place(slot);
      if (is_given_back(place.load(std::memory_order_relaxed))) place.store(nullptr, std::memory_order_relaxed);
    });
  };
  for (Object* const holder : mutator.remembered_) forget(holder);
  auto& finalizable = mutator.finalizable_;
  for (std::size_t i = moved ? 0 : mark.finalizable; i < finalizable.size(); ++i) forget(finalizable[i].object);
  if (transaction.met_ != nullptr && is_given_back(transaction.met_)) transaction.met_ = nullptr;
  if (transaction.depth_ != 0)
    transaction.sift(transaction.store_, transaction.updates_, &Transaction::Level::updates, first_update,
                     [&](UpdateEntry& entry, UpdateEntry& place) {
                       if (is_given_back(entry.object)) return false;
                       if (&place != &entry) {
                         place = entry;
                         transaction.lead_to(place);
                       }
                       return true;
                     });

  const bool waits = !all.settings().opaque;
  // nursery.A: seq_cst: rollback's stores come before it, and the loads of other transactions' epochs after it
  // (release_ripe).
  const std::uint64_t epoch = waits ? all.epoch_.fetch_add(1, std::memory_order_seq_cst) : 0;
  const auto give_back = [&](const Mutator::Piece& piece) {
    const auto bytes = static_cast<std::size_t>(piece.end - piece.start);
    transaction.statistics_.returned_bytes += bytes;
    if (bytes < kReturnedLeast && !waits) return;
    if (waits) {
      const std::lock_guard lock(all.mutex_);
      all.limbo_.push({piece, epoch});
    } else {
      heap.take_back(piece);
    }
  };
  for (std::size_t i = first; i < kept.size(); ++i) give_back(kept[i]);
  kept.resize_down(first);
  if (outer.start != nullptr) kept.push(outer);
  if (from == mutator.next_) return;
  if (waits) {
    // The inner level's part of the buffer is freed with the outer level's.
    if (transaction.depth_ == 0) give_back({from, mutator.next_});
  } else {
    transaction.statistics_.returned_bytes += static_cast<std::size_t>(mutator.next_ - from);
    std::memset(from, 0, static_cast<std::size_t>(mutator.next_ - from));  // M1
    mutator.next_ = from;
  }
}

void TransactionNursery::forget(Transaction& transaction) noexcept { transaction.all_.limbo_.clear(); }

void TransactionNursery::release_ripe(Transaction& transaction) {
  Transactions& all = transaction.all_;
  const std::lock_guard lock(all.mutex_);
  if (all.limbo_.empty()) return;
  std::uint64_t oldest = ~std::uint64_t{0};
  // nursery.A: seq_cst, and acquire of what a transaction read before it ended.
  for (const Transaction* const other : all.running_)
    if (other != nullptr) oldest = std::min(oldest, other->announced_.load(std::memory_order_seq_cst));
  for (std::size_t i = 0; i < all.limbo_.size();) {
    const Transactions::Limbo waiting = all.limbo_[i];
    if (waiting.epoch >= oldest) {
      ++i;
      continue;
    }
    all.limbo_.remove_unordered(i);
    if (static_cast<std::size_t>(waiting.piece.end - waiting.piece.start) >= kReturnedLeast)
      all.heap_.take_back(waiting.piece);
  }
}

}  // namespace loam::gc
