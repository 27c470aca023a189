#include "runtime/gc/tx/transaction.hpp"

#include "runtime/base/bits.hpp"
#include "runtime/base/check.hpp"
#include "runtime/sync/backoff.hpp"

namespace loam::gc {
namespace {

constexpr unsigned kInnerTries = 8;  // of nested transactions, before the outermost one begins again
constexpr unsigned kPollsPerValidation = 1024;
constexpr unsigned kWaitRoundsMax = 1000;  // for an owner: it may not be running
constexpr unsigned kBackoffLog2Max = 12;   // of the rounds
// The most steps of 8 bytes that a heap with short reads can have: a place has 32 bits.
constexpr std::size_t kShortPlacesMost = std::size_t{1} << 32;

std::size_t short_places_of(const Heap& heap, const TxSettings& settings) noexcept {
  const std::size_t places = heap.span_bytes() >> DuplicateFilter::kStepShift;
  const bool has = settings.short_reads && heap.settings().backend == nullptr && places <= kShortPlacesMost;
  return has ? places : 0;
}

}  // namespace

Transaction::Transaction(Transactions& all, Mutator& mutator)
    : filters_(all.settings().hash),
      heap_steps_(DuplicateFilter::steps_of(all.heap().start())),
      short_places_(short_places_of(all.heap(), all.settings())),
      mutator_(mutator),
      all_(all),
      store_(all.store()),
      free_store_(all.free_store()),
      number_(all.add(*this)) {
  if (short_places_ != 0)
    young_places_ = static_cast<std::uint32_t>(mutator.nursery_bytes() >> DuplicateFilter::kStepShift);
  mine_ = owner_word(number_);
  random_ = base::mix(number_ + 1);
  mutator.set_logs(this);
  try {
    free_store_.open(short_places_ != 0 ? static_cast<LogBase&>(short_reads_) : reads_, mutator);
    free_store_.open(undos_, mutator);
    store_.open(updates_, mutator);
  } catch (...) {
    close();
    throw;
  }
}

Transaction::~Transaction() {
  LOAM_CHECK(depth_ == 0, "a thread's Transaction ends inside of a transaction");
  close();
}

void Transaction::close() noexcept {
  mutator_.set_logs(nullptr);
  for_each_log([](LogStore& store, LogBase& log) { store.close(log); });
  all_.remove(*this, number_);
}

void Transaction::begin(platform::Checkpoint& checkpoint) {
  LOAM_CHECK(depth_ < kDepthMax, "transactions nested {} deep: at most {}", depth_ + 1, kDepthMax);
  const TxSettings& settings = all_.settings();
  if (depth_ == 0) {
    // seq_cst: either the announcement comes before all reads, or a thread that has aborted sees it. See nursery.cpp.
    if (settings.nursery && !settings.opaque)
      announced_.exchange(all_.epoch_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
    known_ = all_.clock_.load(std::memory_order_acquire);  // clock.A
    snapshot_ = settings.opaque ? known_ : ~std::uint64_t{0};
  }
  Level& level = levels_[depth_];
  level = {
      short_reads_.size(), reads_.size(), updates_.size(), undos_.size(), mutator_.newest_local(), &checkpoint, {}};
  if (settings.nursery) level.mark = TransactionNursery::mark(mutator_, depth_ == 0);
  ++depth_;
  table_.renew();
}

std::uint64_t Transaction::readable(const LocalBase& local) {
  for (;;) {
    const std::uint64_t word = local.object()->stm().load(std::memory_order_acquire);  // word.A
    if (word <= snapshot_ || (word & ~kEntryMask) == mine_) return word;
    if (is_owned(word)) meet_owner(local);
    extend_or_abort();
  }
}

// Enlists a read of an object that is not in the heap's own addresses, or of any object if no read is short.
void Transaction::enlist_long_read(const LocalBase& local, std::uint64_t word) {
  if (short_places_ != 0) return enlist_read_slow(local);
  reads_.next() = {local.object(), word};
  if (reads_.taken()) [[unlikely]]
    grow(free_store_, reads_);
}

// The object is owned by another attempt, or large, or, without opacity, newer than this attempt.
void Transaction::enlist_read_slow(const LocalBase& local) {
  const std::uint64_t word = readable(local);
  if ((word & ~kEntryMask) == mine_) return;
  if (word <= known_ && place_of(local.object()) < short_places_) {
    set_object(short_reads_.next(), local.object());
    if (short_reads_.taken()) [[unlikely]]
      grow(free_store_, short_reads_);
    return;
  }
  // This may collect. If another thread changes the object meanwhile, validation finds that the read is outdated.
  if (reads_.chunks() == 0) free_store_.open(reads_, mutator_);
  reads_.next() = {local.object(), word};
  if (reads_.taken()) [[unlikely]]
    grow(free_store_, reads_);
}

void Transaction::enlist_update_slow(const LocalBase& local) {
  LOAM_ASSERT(depth_ != 0, "an object is enlisted outside of a transaction");
  bool collects = all_.settings().collect_at_enlistments;
  for (;;) {
    std::uint64_t word = local.object()->stm().load(std::memory_order_acquire);  // word.A
    if (is_owned(word)) meet_owner(local);
    if (word > snapshot_) {
      extend_or_abort();
      continue;
    }
    // Write the entry first, then the word that leads to it: a collection may happen between the two.
    UpdateEntry& entry = updates_.next();
    entry = {local.object(), word, {}};
    if (collects) {
      collects = false;
      mutator_.collect(random_ % 2 == 0);
      continue;
    }
    // word.B: acquire, so that the stores that follow stay behind it; the release side is that of the last owner.
    if (!local.object()->stm().compare_exchange_strong(word, mine_ | reinterpret_cast<std::uintptr_t>(&entry),
                                                       std::memory_order_acq_rel, std::memory_order_relaxed))
      continue;
    if (updates_.taken()) [[unlikely]]
      grow(store_, updates_);
    return;
  }
}

Object* Transaction::enlist_new(Object* object) {
  object->stm().store(mine_ | depth_, std::memory_order_relaxed);  // relaxed: nobody else has it
  Local<Object> kept(mutator_, object);
  updates_.next() = {object, 0, {}};
  if (updates_.taken()) [[unlikely]]
    grow(store_, updates_);
  return kept.get();
}

void Transaction::log_undo(const LocalBase& local, std::size_t offset, bool reference) {
  Object* const object = local.object();
  const std::size_t place = offset & ~std::size_t{7};
  auto* const word = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(object) + place);
  if (filters_ && table_.seen(DuplicateFilter::steps_of(word))) return;
  const std::uint64_t owner = object->stm().load(std::memory_order_relaxed) & kEntryMask;  // relaxed: it is mine
  if (owner < kNoEntry) {
    if (owner == depth_) return;  // made at this level: dead if it aborts
  } else if (depth_ == 1 && place / 8 < UpdateEntry::kWords && all_.settings().bitmap) {
    std::uint64_t& bits = reinterpret_cast<UpdateEntry*>(owner)->logged[place / 8 / 64];
    const std::uint64_t bit = std::uint64_t{1} << (place / 8 % 64);
    if ((bits & bit) != 0) return;
    bits |= bit;
  }
  // relaxed: it is mine
  undos_.next() = {object, place | (reference ? UndoEntry::kReference : 0),
                   std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_relaxed)};
  if (undos_.taken()) [[unlikely]]
    grow(free_store_, undos_);
}

void Transaction::grow(LogStore& store, LogBase& log) {
  std::size_t bytes = 0;
  for_each_log([&](LogStore&, LogBase& open) { bytes += open.size() * open.entry_bytes(); });
  if (bytes > all_.settings().log_bytes_max) throw LogsTooLong(bytes, all_.settings().log_bytes_max);
  store.grow(log, mutator_);
}

bool Transaction::validate() const noexcept {
  if (all_.settings().placement == Placement::unlogged) return true;
  bool valid = true;
  short_reads_.for_each(0, short_reads_.size(), [&](const ShortRead& entry, std::size_t) {
    const std::uint64_t word = object_of(entry)->stm().load(std::memory_order_acquire);  // word.A
    if (word <= known_) return;                                                          // T3
    // The object is mine; but without opacity another transaction may have changed it before I owned it.
    if ((word & ~kEntryMask) == mine_ &&
        ((word & kEntryMask) < kNoEntry || reinterpret_cast<const UpdateEntry*>(word & kEntryMask)->old <= known_))
      return;
    valid = false;
  });
  reads_.for_each(0, reads_.size(), [&](const ReadEntry& entry, std::size_t) {
    const std::uint64_t word = entry.object->stm().load(std::memory_order_acquire);  // word.A
    if (word == entry.word && !is_owned(word)) return;
    if ((word & ~kEntryMask) == mine_) {
      if ((word & kEntryMask) < kNoEntry) return;
      if (reinterpret_cast<const UpdateEntry*>(word & kEntryMask)->old == entry.word) return;
    }
    valid = false;
  });
  return valid;
}

void Transaction::extend_or_abort() {
  const std::uint64_t now = all_.clock_.load(std::memory_order_acquire);  // clock.A
  if (!validate()) abort();
  known_ = snapshot_ = now;
  ++statistics_.extensions;
}

void Transaction::meet_owner(const LocalBase& local) {
  met_ = local.object();
  abort();
}

void Transaction::retry() {
  met_ = nullptr;
  abort();
}

void Transaction::abort() {
  waits_ = true;
  if (depth_ > 1 && inner_tries_ < kInnerTries) {
    ++inner_tries_;
    ++statistics_.inner_aborts;
    platform::Checkpoint& inner = *levels_[depth_ - 1].checkpoint;
    roll_back(depth_ - 1);
    const std::uint64_t now = all_.clock_.load(std::memory_order_acquire);  // clock.A
    if (validate()) {
      if (all_.settings().opaque) known_ = snapshot_ = now;
      platform::restart(inner, 1);
    }
  }
  platform::Checkpoint& outermost = *levels_[0].checkpoint;
  roll_back(0);
  ++statistics_.aborts;
  ++aborts_;
  platform::restart(outermost, 1);
}

void Transaction::cancel() noexcept {
  roll_back(depth_ - 1);
  if (depth_ != 0) return;
  ++statistics_.aborts;
  aborts_ = 0;
  waits_ = false;
  std::uint32_t mine = number_ + 1;
  all_.alone_.compare_exchange_strong(mine, 0, std::memory_order_relaxed);  // relaxed: see before_attempt()
}

// As a rollback, but nothing is given back: the thread's buffers and Locals are gone.
void Transaction::forget() noexcept {
  if (all_.settings().placement != Placement::unlogged) undo(0);
  if (updates_.size() != 0) release(all_.clock_.fetch_add(1, std::memory_order_acq_rel) + 1);  // clock.A
  std::uint32_t mine = number_ + 1;
  all_.alone_.compare_exchange_strong(mine, 0, std::memory_order_relaxed);  // relaxed: see before_attempt()
  depth_ = 0;
  close();
}

// Needs no write barrier. If an old value refers to a young object, it was stored after the last collection, which left
// no object young. So the object that holds it is young as well, or that store has remembered it.
void Transaction::undo(std::size_t first) noexcept {
  undos_.for_each_backwards(first, [&](const UndoEntry& entry) {
    auto* const word = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(entry.object) + entry.offset());
    std::atomic_ref<std::uint64_t>(*word).store(entry.old, std::memory_order_release);  // word.B
  });
}

// Objects that a nested transaction owns stay owned until the outermost one ends, so an inner abort invalidates nothing
// outer.
void Transaction::roll_back(unsigned to) noexcept {
  const Level& level = levels_[to];
  if (all_.settings().placement == Placement::unlogged)
    LOAM_FATAL("gc-unlogged: a transaction aborts, but its logs were not kept (use it for private data only)");
  undo(level.undos);
  count_unowned(level);
  mutator_.newest_local() = level.locals;
  depth_ = to;
  table_.renew();
  if (to != 0) {
    if (all_.settings().nursery) TransactionNursery::reset(*this, level.mark, level.updates);
    truncate_unowned(level);
    return;
  }
  statistics_.updates += updates_.size();
  // A new version, because other transactions may have read the values that are undone now.
  if (updates_.size() != 0) release(all_.clock_.fetch_add(1, std::memory_order_acq_rel) + 1);  // clock.A
  truncate_unowned(level);
  store_.truncate(updates_, 0);
  if (all_.settings().nursery) TransactionNursery::reset(*this, level.mark, 0);
  end();
}

void Transaction::count_unowned(const Level& from) noexcept {
  const std::size_t long_reads = reads_.size() - from.reads;
  statistics_.reads += short_reads_.size() - from.short_reads + long_reads;
  statistics_.long_reads += long_reads;
  statistics_.undos += undos_.size() - from.undos;
}

void Transaction::truncate_unowned(const Level& to) noexcept {
  free_store_.truncate(short_reads_, to.short_reads);
  free_store_.truncate(reads_, to.reads);
  free_store_.truncate(undos_, to.undos);
}

void Transaction::release(std::uint64_t version) noexcept {
  updates_.for_each(0, updates_.size(), [&](const UpdateEntry& entry, std::size_t) {
    entry.object->stm().store(version, std::memory_order_release);  // word.A
  });
}

void Transaction::commit() {
  if (depth_ > 1) {
    // Objects that it made belong to the outer transaction from now on.
    if (all_.settings().locals)
      updates_.for_each(levels_[depth_ - 1].updates, updates_.size(), [&](const UpdateEntry& entry, std::size_t) {
        if (entry.object->stm().load(std::memory_order_relaxed) == (mine_ | depth_))  // relaxed: it is mine
          entry.object->stm().store(mine_ | (depth_ - 1), std::memory_order_relaxed);
      });
    --depth_;
    return;
  }
  const std::size_t updates = updates_.size();
  if (updates == 0) {
    // With opacity all values that were read were in memory at the snapshot, so no validation is needed.
    if (!all_.settings().opaque && !validate()) abort();
  } else {
    const std::uint64_t version = all_.clock_.fetch_add(1, std::memory_order_acq_rel) + 1;  // clock.A
    if ((!all_.settings().opaque || version != snapshot_ + 1) && !validate()) abort();
    release(version);
  }
  count_unowned(levels_[0]);
  statistics_.updates += updates;
  depth_ = 0;
  for_each_log([](LogStore& store, LogBase& log) { store.ended(log); });
  truncate_unowned(levels_[0]);
  store_.truncate(updates_, 0);
  end();
  ++statistics_.commits;
  aborts_ = 0;
  waits_ = false;
  if (all_.alone_.load(std::memory_order_relaxed) == number_ + 1)  // relaxed: see before_attempt()
    all_.alone_.store(0, std::memory_order_relaxed);
}

void Transaction::end() noexcept {
  inner_tries_ = 0;
  met_ = depth_ == 0 && waits_ ? met_ : nullptr;
  if (!all_.settings().nursery) return;
  TransactionNursery::end(mutator_);
  if (all_.settings().opaque) return;
  announced_.store(~std::uint64_t{0}, std::memory_order_release);  // nursery.A
  TransactionNursery::release_ripe(*this);
}

// relaxed, of alone_: it only decides when transactions begin. Clock and words order what they see of each other.
void Transaction::before_attempt() {
  // Short transactions may pass no other safepoint.
  mutator_.safepoint();
  if (depth_ != 0) return;
  const TxSettings& settings = all_.settings();
  sync::Backoff backoff;
  const auto pause = [&] {
    mutator_.safepoint();
    backoff.wait();
  };
  const std::uint32_t mine = number_ + 1;
  if (aborts_ >= settings.alone_after) {
    while (all_.alone_.load(std::memory_order_relaxed) != mine) {
      std::uint32_t nobody = 0;
      if (all_.alone_.compare_exchange_strong(nobody, mine, std::memory_order_relaxed)) {
        ++statistics_.alone;
        break;
      }
      pause();
    }
  } else {
    while (all_.alone_.load(std::memory_order_relaxed) != 0) pause();
  }
  if (!waits_) return;
  waits_ = false;
  if (settings.contention == Contention::delay && met_ != nullptr) {
    for (unsigned i = 0; i < kWaitRoundsMax && met_ != nullptr; ++i) {
      if (!is_owned(met_->stm().load(std::memory_order_relaxed))) break;  // relaxed: decides when to try
      pause();
    }
  } else if (settings.contention != Contention::suicide) {
    random_ = base::mix(random_);
    const unsigned log2 = std::min(aborts_ + 2, kBackoffLog2Max);
    for (std::uint64_t rounds = random_ >> (64 - log2); rounds != 0; --rounds) platform::pause();
    mutator_.safepoint();
  }
  met_ = nullptr;
}

void Transaction::safepoint() {
  mutator_.safepoint();
  if (depth_ == 0 || all_.settings().opaque || ++polls_ % kPollsPerValidation != 0) return;
  if (!validate()) abort();
}

TxStatistics Transaction::statistics() const noexcept { return statistics_; }

}  // namespace loam::gc
