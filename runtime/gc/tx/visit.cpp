// What a collection does with the logs of a transaction.
//   before    duplicates are removed from the read logs, and so are reads of objects that the transaction owns by now
//   strong    old values of references keep their objects alive: a rollback stores them into the heap again. From these
//             and the roots all objects are reachable that a rollback can bring back, so all other entries are weak.
//   weak      an entry gets the new address of its object, or is removed if the object is dead. Later entries move
//             down, so chunks stay full (L2); the levels' counts are adjusted, and the word of an owned object gets the
//             new address of its entry (W1).
//   A minor collection visits only the entries since the last collection (L3), because that one left no object young.
#include "runtime/base/check.hpp"
#include "runtime/gc/backend.hpp"
#include "runtime/gc/tx/sift.hpp"
#include "runtime/gc/tx/transaction.hpp"

namespace loam::gc {
namespace {

constexpr unsigned kSparedCompactions = 15;  // full collections without one, after a compaction that did not pay off
// A compaction pays off if it removes at least one of so many reads that it visits. It visits each of them twice.
constexpr std::size_t kWorthWhile = 4;
constexpr std::size_t kSampledLeast = 4096;  // reads: fewer are compacted without a sample

// One object in 16, by its address.
bool is_sampled(const Object* object) noexcept {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  return (reinterpret_cast<std::uintptr_t>(object) >> 3) * kGolden >> 60 == 0;
}

// Not a read-modify-write: the world is stopped, and there is one collector.
void set_mark(const Object* object, bool marked) noexcept {
  const auto header = object->word();
  const std::uintptr_t word = header.load(std::memory_order_relaxed) & ~Object::kMarked;  // relaxed: as above
  header.store(marked ? word | Object::kMarked : word, std::memory_order_relaxed);
}

}  // namespace

std::size_t Transaction::first_visited(const LogBase& log, bool full) const noexcept {
  return full || !all_.settings().watermark ? 0 : log.watermark();
}

void Transaction::before_collection(bool full, bool last) {
  table_.renew();  // addresses of objects change, or are used for other objects
  TransactionNursery::forget(*this);
  if (all_.settings().placement == Placement::unlogged) {
    for (unsigned i = 0; i < depth_; ++i) levels_[i].short_reads = levels_[i].reads = levels_[i].undos = 0;
    truncate_unowned(Level{});
  } else if (depth_ != 0) {
    const Compaction when = all_.settings().compaction;
    if (when == Compaction::every) {
      compact(full);
    } else if (full && when == Compaction::full) {
      if (spared_compactions_ != 0 && !last)
        --spared_compactions_;
      else if ((!last && !is_compaction_promising()) || !compact(full))
        spared_compactions_ = kSparedCompactions;
    }
  }
}

// Decides by a sample. In a log without duplicates about a sixteenth of the objects is sampled. If fewer are, few
// objects fill the log, and the sample proves nothing: then the answer is yes.
bool Transaction::is_compaction_promising() {
  const std::size_t reads = short_reads_.size() + reads_.size();
  if (reads < kSampledLeast) return true;
  std::size_t sampled = 0, superfluous = 0;
  const auto for_each_sampled = [&](auto&& visit) {
    const auto look = [&](auto& entry, std::size_t) {
      if (const Object* const object = object_of(entry); is_sampled(object)) visit(object);
    };
    short_reads_.for_each(0, short_reads_.size(), look);
    reads_.for_each(0, reads_.size(), look);
  };
  for_each_sampled([&](const Object* object) {
    ++sampled;
    if (is_mine(object) || object->has(Object::kMarked)) ++superfluous;
    set_mark(object, true);
  });
  for_each_sampled([](const Object* object) { set_mark(object, false); });
  return sampled * 32 < reads || superfluous * kWorthWhile >= sampled;
}

// Of several entries of an object the first one stays, because an abort of the inner level must not remove a read of
// the outer one. An object is in both logs only without opacity. Its short read is then the older one, and may be
// outdated, so short reads come first.
// returns whether it paid off
bool Transaction::compact(bool full) {
  Statistics& counts = mutator_.heap().statistics_while_stopped();
  std::size_t looked_at = 0, dropped = 0;
  const auto drop = [&](auto& log, std::size_t Level::* levels, auto is_as_before_update) {
    const std::size_t first = first_visited(log, full), before = log.size();
    sift(free_store_, log, levels, first, [&](auto& entry, auto& place) {
      Object* const object = object_of(entry);
      // relaxed: the world is stopped.
      const std::uint64_t word = object->stm().load(std::memory_order_relaxed);
      if ((word & ~kEntryMask) == mine_ &&
          ((word & kEntryMask) < kNoEntry ||
           is_as_before_update(entry, reinterpret_cast<const UpdateEntry*>(word & kEntryMask)->old))) {
        ++counts.dropped_subsumed;
        return false;
      }
      if (object->has(Object::kMarked)) {
        ++counts.dropped_duplicates;
        return false;
      }
      set_mark(object, true);
      place = entry;
      return true;
    });
    looked_at += before - first;
    dropped += before - log.size();
    return before - log.size();
  };
  const auto unmark = [&](auto& log) {
    log.for_each(first_visited(log, full), log.size(),
                 [&](auto& entry, std::size_t) { set_mark(object_of(entry), false); });
  };
  drop(short_reads_, &Level::short_reads, [&](ShortRead, std::uint64_t old) { return old <= known_; });
  statistics_.long_reads +=
      drop(reads_, &Level::reads, [](const ReadEntry& entry, std::uint64_t old) { return old == entry.word; });
  unmark(short_reads_);
  unmark(reads_);
  statistics_.reads += dropped;
  return dropped * kWorthWhile >= looked_at;
}

void Transaction::visit_strong(Collector& collector) {
  for_each_log([&](LogStore& store, LogBase& log) { store.visit_chunks(log, collector); });
  undos_.for_each(first_visited(undos_, collector.is_full()), undos_.size(), [&](UndoEntry& entry, std::size_t) {
    if (!entry.is_reference()) return;
    auto* old = reinterpret_cast<Object*>(entry.old);
    collector.visit(old);
    entry.old = reinterpret_cast<std::uintptr_t>(old);
  });
}

void Transaction::visit_weak(Collector& collector) {
  const bool full = collector.is_full();
  follow(
      full, [&](Object* object) { return collector.moved(object); },
      // A full collection moves all objects that have short reads.
      [&](Object* object) { return full ? Collector::forwarded(*object) : collector.moved(object); });
}

std::size_t Transaction::give_back() noexcept {
  std::size_t bytes = 0;
  for_each_log([&](LogStore& store, LogBase& log) { bytes += store.give_back(log); });
  return bytes;
}

void Transaction::keep_strong(const Backend& backend) {
  for_each_log([&](LogStore& store, LogBase& log) { store.keep_chunks(log, backend); });
  undos_.for_each(0, undos_.size(), [&](const UndoEntry& entry, std::size_t) {
    if (entry.is_reference() && entry.old != 0) backend.keep(reinterpret_cast<Object*>(entry.old));
  });
}

void Transaction::drop_dead(const Backend& backend) {
  const auto if_live = [&](Object* object) { return object != nullptr && backend.is_live(object) ? object : nullptr; };
  follow(true, if_live, if_live);
}

// moved(object): its new address; null if it is dead. moved_short: the same, for objects that have short reads
template <class Moved, class MovedShort>
void Transaction::follow(bool full, Moved moved, MovedShort moved_short) {
  Statistics& counts_of_heap = mutator_.heap().statistics_while_stopped();
  const auto sift_dead = [&](LogStore& store, auto& log, std::size_t Level::* counts, auto moved, auto has_moved) {
    const std::size_t first = first_visited(log, full), before = log.size();
    counts_of_heap.visited_entries += before - first;
    const auto goes = [&](auto& entry) {
      Object* const object = moved(object_of(entry));
      if (object == nullptr) return true;
      if (object_of(entry) != object) set_object(entry, object);
      has_moved(entry);
      return false;
    };
    // Most logs lose no entry or few. So entries move down only behind the first one that is removed.
    const std::size_t gone = first_that_goes(log, first, before, full, goes);
    sift(store, log, counts, gone, [&](auto& entry, auto& place) {
      Object* const object = moved(object_of(entry));
      if (object == nullptr) return false;
      place = entry;
      set_object(place, object);
      has_moved(place);
      return true;
    });
    counts_of_heap.dropped_dead += before - log.size();
    log.set_watermark(log.size());
    return before - log.size();
  };
  const auto nothing_more = [](auto&) {};
  statistics_.updates +=
      sift_dead(store_, updates_, &Level::updates, moved, [&](UpdateEntry& place) { lead_to(place); });
  statistics_.undos += sift_dead(free_store_, undos_, &Level::undos, moved, nothing_more);
  statistics_.reads += sift_dead(free_store_, short_reads_, &Level::short_reads, moved_short, nothing_more);
  const std::size_t reads = sift_dead(free_store_, reads_, &Level::reads, moved, nothing_more);
  statistics_.reads += reads;
  statistics_.long_reads += reads;
  met_ = moved(met_);
}

template <class Entry, class Goes>
std::size_t Transaction::first_that_goes(const Log<Entry>& log, std::size_t first, std::size_t end, bool full,
                                         Goes goes) const {
  return log.first_where(first, end, goes, [&](const Entry& next) {
    if (full) __builtin_prefetch(object_of(next));
  });
}

// A minor collection moves young objects only, and the nursery is where the heap begins.
template <class Goes>
std::size_t Transaction::first_that_goes(const Log<ShortRead>& log, std::size_t first, std::size_t end, bool full,
                                         Goes goes) const {
  if (!full) {
    const std::uint32_t young_places = young_places_;
    return log.first_where_of(first, end, [=](ShortRead entry) { return entry.place < young_places; }, goes);
  }
  return log.first_where(first, end, goes, [&](ShortRead next) { __builtin_prefetch(object_of(next)); });
}

void Transaction::lead_to(UpdateEntry& entry) noexcept {
  // relaxed: it is mine; or the world is stopped.
  const std::uint64_t word = entry.object->stm().load(std::memory_order_relaxed);
  if ((word & kEntryMask) >= kNoEntry)
    entry.object->stm().store(mine_ | reinterpret_cast<std::uintptr_t>(&entry), std::memory_order_relaxed);
}

void Transaction::verify() const {
  updates_.for_each(0, updates_.size(), [&](const UpdateEntry& entry, std::size_t number) {
    const std::uint64_t word = entry.object->stm().load(std::memory_order_relaxed);
    const bool leads =
        (word & kEntryMask) < kNoEntry || (word & kEntryMask) == reinterpret_cast<std::uintptr_t>(&entry);
    LOAM_CHECK((word & ~kEntryMask) == mine_ && leads, "W1: update entry {} is that of {}, whose word is {}", number,
               entry.object, word);
  });
  for (unsigned i = 0; i + 1 < depth_; ++i) {
    const Level &outer = levels_[i], &inner = levels_[i + 1];
    LOAM_CHECK(outer.short_reads <= inner.short_reads && outer.reads <= inner.reads && outer.updates <= inner.updates &&
                   outer.undos <= inner.undos,
               "T2: the counts of level {} exceed those of the next one", i);
  }
}

}  // namespace loam::gc
