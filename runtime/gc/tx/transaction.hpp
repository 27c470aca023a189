// Transaction: a thread's transactions on the objects of a heap: decomposed, in place, with direct access.
//   Source      Harris, Plesko, Shinnar, Tarditi, "Optimizing memory transactions", PLDI 2006; snapshots of a clock:
//               Riegel, Felber, Fetzer, "A lazy snapshot algorithm", DISC 2006; what paper 002 does with its logs.
//   Guarantees  opacity (TxSettings::opaque). Without it committed transactions are serializable; a doomed one may read
//               values that were never together in memory, until it validates.
//   Contract    before a field is read: enlist_read or enlist_update since the outermost begin; before it is written:
//               enlist_update, and log_undo since the innermost begin. read() and write() do it all. An object that the
//               transaction made needs neither until it is linked somewhere; init() its fields before the next call.
//   Cost        read: table look-up, load of the word, append, load of the field, compare. write: CAS at the first.
//   When not    data that is not in a managed heap: runtime/tm.
//
//   Memory orders
//     word.A  a commit or rollback releases the word; enlist_read and enlist_update acquire it. Without it a reader could
//             take the new version and still read old fields.
//     word.B  fields are stored with release after the word was made owned, and loaded with acquire before the word is
//             loaded again. So a thread that reads a value of an owner also sees that the object is owned, or newer.
//             Without it a dirty value could be taken for one of the snapshot.
//     clock.A fetch_add (acq_rel) in commit and rollback; load (acquire) in begin and extend. So a thread that sees a
//             time also sees that all objects of the commit were owned before.
//   Invariants
//   T1 while depth_ is 0 the logs are empty.   T2 levels_[i] counts entries; counts grow with i.
//   T3 a transaction that changes an object after a short read of it gives it a version beyond known_: it has owned the
//      object after that read, and has taken its time after that (clock.A). So "free, and not newer than known_" means
//      unchanged.
#pragma once

#include "runtime/gc/logs/entries.hpp"
#include "runtime/gc/logs/log.hpp"
#include "runtime/gc/mutator.hpp"
#include "runtime/gc/roots.hpp"
#include "runtime/gc/tx/filter.hpp"
#include "runtime/gc/tx/nursery.hpp"
#include "runtime/gc/tx/transactions.hpp"
#include "runtime/platform/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace loam::gc {

class Transaction : private LogVisitor {
 public:
  static constexpr unsigned kDepthMax = 64;

  Transaction(Transactions& all, Mutator& mutator);
  virtual ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // ---- the decomposed interface; each may collect, and may leave the attempt
  [[gnu::always_inline]] void enlist_read(const LocalBase& local) {
    Object* const object = local.object();
    const std::uintptr_t steps = DuplicateFilter::steps_of(object);
    if (filters_ && table_.seen(steps)) return;
    const std::uint64_t word = object->stm().load(std::memory_order_acquire);  // word.A
    if (word > known_) [[unlikely]]
      return enlist_read_slow(local);
    const std::uintptr_t place = steps - heap_steps_;
    if (place >= short_places_) [[unlikely]]
      return enlist_long_read(local, word);
    short_reads_.next() = {static_cast<std::uint32_t>(place)};
    if (short_reads_.taken()) [[unlikely]]
      grow(free_store_, short_reads_);
  }
  [[gnu::always_inline]] void enlist_update(const LocalBase& local) {
    // relaxed: only whether it is mine, which no other thread can change.
    if ((local.object()->stm().load(std::memory_order_relaxed) & ~kEntryMask) != mine_) enlist_update_slow(local);
  }
  void log_undo(const LocalBase& local, std::size_t offset, bool reference);
  // Whether all objects that were read are unchanged. Does not leave the attempt.
  bool validate() const noexcept;

  // ---- fields
  template <class T, class C, class R>
  R* read(const Local<T>& object, Ref<R> C::* member) {
    enlist_read(object);
    return static_cast<R*>(load(object, [&] { return &(object.get()->*member); }));
  }
  template <class T, class C, class V>
  V read(const Local<T>& object, Value<V> C::* member) {
    enlist_read(object);
    return load(object, [&] { return &(object.get()->*member); });
  }
  template <class T, class C, class R>
  void write(const Local<T>& object, Ref<R> C::* member, const Local<R>& value) {
    store(object, [&] { return &(object.get()->*member); }, [&] { return value.get(); });
  }
  template <class T, class C, class R>
  void write(const Local<T>& object, Ref<R> C::* member, std::nullptr_t) {
    store(object, [&] { return &(object.get()->*member); }, [] { return static_cast<R*>(nullptr); });
  }
  template <class T, class C, class V>
  void write(const Local<T>& object, Value<V> C::* member, std::type_identity_t<V> value) {
    store(object, [&] { return &(object.get()->*member); }, [&] { return value; });
  }
  // ---- elements; the length never changes and needs no enlistment
  template <class R>
  R* read_at(const Local<RefArray<R>>& array, std::size_t index) {
    enlist_read(array);
    return static_cast<R*>(load(array, [&] { return &array->template at<Ref<R>>(index); }));
  }
  template <class V>
  V read_at(const Local<ValueArray<V>>& array, std::size_t index) {
    enlist_read(array);
    return load(array, [&] { return &array->template at<Value<V>>(index); });
  }
  template <class R>
  void write_at(const Local<RefArray<R>>& array, std::size_t index, const Local<R>& value) {
    store(array, [&] { return &array->template at<Ref<R>>(index); }, [&] { return value.get(); });
  }
  template <class R>
  void write_at(const Local<RefArray<R>>& array, std::size_t index, std::nullptr_t) {
    store(array, [&] { return &array->template at<Ref<R>>(index); }, [] { return static_cast<R*>(nullptr); });
  }
  template <class V>
  void write_at(const Local<ValueArray<V>>& array, std::size_t index, std::type_identity_t<V> value) {
    store(array, [&] { return &array->template at<Value<V>>(index); }, [&] { return value; });
  }

  // ---- objects
  template <class T>
  T* create() {
    return static_cast<T*>(created(mutator_.allocate<T>()));
  }
  template <class A>
  A* create_array(std::size_t length) {
    return static_cast<A*>(created(mutator_.allocate_array<A>(length)));
  }

  Mutator& mutator() noexcept { return mutator_; }
  unsigned depth() const noexcept { return depth_; }
  void safepoint();
  // Leaves the attempt, and begins it again: for a program that waits for changes by other threads.
  [[noreturn]] void retry();

  // Counts of ended attempts, and of the running attempt what is in its logs.
  TxStatistics statistics() const noexcept;
  std::size_t entries() const noexcept { return short_reads_.size() + reads_.size() + updates_.size() + undos_.size(); }

  // ---- for atomically() (driver.hpp)
  void begin(platform::Checkpoint& checkpoint);
  void commit();
  void cancel() noexcept;
  void before_attempt();

 protected:
  Object* created(Object* object) { return all_.settings().locals && depth_ != 0 ? enlist_new(object) : object; }

 private:
  friend class TransactionNursery;  // see Transactions

  struct Level {
    std::size_t short_reads, reads, updates, undos;
    LocalBase* locals;
    platform::Checkpoint* checkpoint;
    Mutator::Mark mark;
  };

  template <class Place>
  [[gnu::always_inline]] auto load(const LocalBase& local, Place place) {
    const auto value = place()->slot().load(std::memory_order_acquire);                    // word.B
    if (local.object()->stm().load(std::memory_order_relaxed) > snapshot_) [[unlikely]] {  // relaxed: see word.B
      if (!is_mine(local.object())) return load_slow(local, place);
    }
    return value;
  }
  template <class Place>
  [[gnu::noinline]] auto load_slow(const LocalBase& local, Place place) {
    for (;;) {
      const std::uint64_t word = readable(local);
      const auto value = place()->slot().load(std::memory_order_acquire);               // word.B
      if (local.object()->stm().load(std::memory_order_relaxed) == word) return value;  // relaxed: see word.B
    }
  }
  template <class Place, class NewValue>
  [[gnu::always_inline]] void store(const LocalBase& local, Place place, NewValue value) {
    enlist_update(local);
    using Field = std::remove_pointer_t<decltype(place())>;
    constexpr bool kReference = requires { typename Field::Target; };
    log_undo(
        local,
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(place()) - reinterpret_cast<std::byte*>(local.object())),
        kReference);
    place()->slot().store(value(), std::memory_order_release);  // word.B
    if constexpr (kReference) mutator_.barrier(local.object(), value());
  }

  bool is_mine(const Object* object) const noexcept {
    return (object->stm().load(std::memory_order_relaxed) & ~kEntryMask) == mine_;  // relaxed: as in enlist_update
  }
  [[gnu::noinline]] void enlist_long_read(const LocalBase& local, std::uint64_t word);
  [[gnu::noinline]] void enlist_read_slow(const LocalBase& local);
  [[gnu::noinline]] void enlist_update_slow(const LocalBase& local);
  // A word of a free object that is not newer than the snapshot; extends the snapshot or leaves the attempt otherwise.
  std::uint64_t readable(const LocalBase& local);
  Object* enlist_new(Object* object);
  // The object's distance from the start of the heap, in steps. It is in the heap's own addresses if this is less than
  // short_places_.
  std::uintptr_t place_of(const Object* object) const noexcept {
    return DuplicateFilter::steps_of(object) - heap_steps_;
  }
  Object* object_of(const ShortRead& entry) const noexcept {
    return reinterpret_cast<Object*>((heap_steps_ + entry.place) << DuplicateFilter::kStepShift);
  }
  template <class Entry>
  static Object* object_of(const Entry& entry) noexcept {
    return entry.object;
  }
  void set_object(ShortRead& entry, Object* object) const noexcept {
    entry.place = static_cast<std::uint32_t>(place_of(object));
  }
  template <class Entry>
  static void set_object(Entry& entry, Object* object) noexcept {
    entry.object = object;
  }
  [[gnu::noinline, gnu::cold]] void grow(LogStore& store, LogBase& log);
  void extend_or_abort();
  [[noreturn]] void meet_owner(const LocalBase& local);
  [[noreturn]] void abort();
  void roll_back(unsigned level) noexcept;
  void undo(std::size_t first) noexcept;
  void release(std::uint64_t version) noexcept;
  void end() noexcept;
  void close() noexcept;
  // Reads and undo entries, from what a level had when it began on.
  void count_unowned(const Level& from) noexcept;
  void truncate_unowned(const Level& to) noexcept;
  // f(store, log) for each log that is open.
  template <class F>
  void for_each_log(F&& f) {
    for (LogBase* const log : std::initializer_list<LogBase*>{&short_reads_, &reads_, &undos_})
      if (log->chunks() != 0) f(free_store_, *log);
    if (updates_.chunks() != 0) f(store_, updates_);
  }
  // W1, after an entry has moved.
  void lead_to(UpdateEntry& entry) noexcept;

  // LogVisitor, in visit.cpp
  void before_collection(bool full, bool last) override;
  void visit_strong(Collector& collector) override;
  void visit_weak(Collector& collector) override;
  void keep_strong(const Backend& backend) override;
  void drop_dead(const Backend& backend) override;
  std::size_t give_back() noexcept override;
  void verify() const override;
  void forget() noexcept override;
  bool compact(bool full);
  std::size_t first_visited(const LogBase& log, bool full) const noexcept;
  bool is_compaction_promising();
  template <class Moved, class MovedShort>
  void follow(bool full, Moved moved, MovedShort moved_short);
  template <class Entry, class Goes>
  std::size_t first_that_goes(const Log<Entry>& log, std::size_t first, std::size_t end, bool full, Goes goes) const;
  template <class Goes>
  std::size_t first_that_goes(const Log<ShortRead>& log, std::size_t first, std::size_t end, bool full,
                              Goes goes) const;
  template <class Entry, class Keep>
  void sift(LogStore& store, Log<Entry>& log, std::size_t Level::* counts, std::size_t first, Keep keep);

  // Members that fast paths use come first.
  std::uint64_t known_ = 0;            // with opacity the snapshot; without it the clock's value when the attempt began
  std::uint64_t snapshot_ = 0;         // with opacity no value of a newer object is used; without it ~0
  const bool filters_;                 // whether table_ is used
  const std::uintptr_t heap_steps_;    // where the heap begins, in the steps of the filter and of ShortRead::place
  const std::uintptr_t short_places_;  // objects at smaller places in the heap get short reads; 0: no object does
  Log<ShortRead> short_reads_;
  Log<ReadEntry> reads_;  // open where short_places_ is 0, or once such a read comes
  Log<UndoEntry> undos_;
  Log<UpdateEntry> updates_;
  std::uint64_t mine_ = 0;
  Mutator& mutator_;
  Transactions& all_;
  LogStore &store_, &free_store_;
  unsigned depth_ = 0;
  Level levels_[kDepthMax];
  DuplicateFilter table_;
  std::uint32_t young_places_ = 0;         // short reads of young objects have places below this one
  unsigned aborts_ = 0, inner_tries_ = 0;  // of the transaction that runs
  unsigned polls_ = 0, spared_compactions_ = 0;
  bool waits_ = false;
  Object* met_ = nullptr;  // the object that another transaction owned, for which this one waits
  std::uint64_t random_;
  std::atomic<std::uint64_t> announced_{~std::uint64_t{0}};  // epoch of the attempt that runs; ~0: none
  TxStatistics statistics_;
  unsigned number_;  // last: all_ leads other threads to this object once it has given the number
};

}  // namespace loam::gc
