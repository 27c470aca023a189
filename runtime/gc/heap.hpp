// Heap: the spaces of a managed heap, requests for memory, and the decision when to collect.
//   nursery        new objects; threads take buffers of it. A minor collection copies live objects to the old
//   generation. old generation two halves; a full collection copies live objects, young and old, from one to the other.
//   large objects  pages of their own (large.hpp).
//   Growth policy  memory = nursery + 2 halves + large objects + charged logs, never more. So a half has what large
//                  objects and logs leave, and the nursery is cut to what the half has free:
//   H1 old in use + nursery in use <= half: a collection always has room for what lives.
//                  If a minor collection leaves room for less than half of a nursery, logs return the memory that
//                  contains no entry. If that is not enough, a full collection follows. If that leaves too little for
//                  what was asked, and so does another one that removes duplicates from logs, OutOfMemory is thrown.
//                  The thread takes its memory before other threads run again (request.hpp).
//   Locks          mutex_ guards all of it while threads run. A collection holds it too, and needs no other lock,
//                  because all other threads are stopped.
#pragma once

#include "runtime/gc/large.hpp"
#include "runtime/gc/mutator.hpp"
#include "runtime/gc/os_vector.hpp"
#include "runtime/gc/request.hpp"
#include "runtime/gc/settings.hpp"
#include "runtime/gc/world.hpp"

#include <cstddef>
#include <mutex>

namespace loam::gc {

class Heap {
 public:
  explicit Heap(const Settings& settings = {});
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  const Settings& settings() const noexcept { return settings_; }
  World& world() noexcept { return world_; }

  // Calls the finalizers of what died; of each object once. Those of a thread's objects that died together run in the
  // order in which they were made. Not inside of a transaction.
  void run_finalizers(Mutator& mutator);

  // Memory for logs outside of the heap. May collect; throws OutOfMemory.
  void charge_logs(Mutator& mutator, std::size_t bytes);
  void discharge_logs(std::size_t bytes) noexcept;

  // While no other thread runs: also after all Mutators ended.
  Statistics statistics();
  Statistics& statistics_while_stopped() noexcept { return statistics_; }
  // Where objects lie that move: nursery and both halves.
  const std::byte* start() const noexcept { return nursery_start_; }
  std::size_t span_bytes() const noexcept { return span_bytes_; }
  std::size_t live_bytes() const noexcept { return old_used() + large_.mapped_bytes(); }
  std::size_t log_bytes() const noexcept { return log_bytes_; }
  std::uint64_t collections() const noexcept { return statistics_.minor + statistics_.full; }

  // Verifies the whole heap; ends the program if an invariant is broken. Checked builds do it before and after each
  // collection.
  void verify(Mutator& mutator);

  // For roots, which are in a list from their constructor to their destructor.
  void add_global(GlobalBase& global);
  void remove_global(GlobalBase& global);
  // For transactions: memory of the nursery, all zero or not, that nobody uses any more.
  void take_back(const Mutator::Piece& piece) {
    const std::lock_guard lock(mutex_);
    returned_.push(piece);
  }
  // Around a fork (fork.cpp): first all heaps stop, then each is locked.
  void lock_for_fork() {
    mutex_.lock();
    world_.lock_for_fork();
  }
  void resume_after_fork(bool in_child) {
    mutex_.unlock();
    world_.resume_after_fork(in_child);
  }
  void forget_other_threads();
  void undo_forgotten();
  Heap*& next_heap() noexcept { return next_heap_; }

 private:
  // What a Mutator takes is taken with the mutex; the other two read and move all there is, while the world is stopped.
  friend class Mutator;
  friend class Collector;
  friend class Verifier;

  struct Half {
    std::byte* start = nullptr;
    std::byte* top = nullptr;
  };

  std::size_t old_used() const noexcept { return static_cast<std::size_t>(old_.top - old_.start); }
  std::size_t nursery_used() const noexcept { return static_cast<std::size_t>(nursery_top_ - nursery_start_); }
  // Of a half: what the rest leaves of the memory.
  std::size_t half_bytes(std::size_t more = 0) const noexcept;
  std::size_t charged_log_bytes() const noexcept { return settings_.charge_logs ? log_bytes_ : 0; }
  void cut_nursery() noexcept;
  // The nursery was cut to less than half of its usual size.
  bool is_nursery_short() const noexcept {
    return static_cast<std::size_t>(nursery_end_ - nursery_start_) < settings_.nursery_bytes / 2;
  }
  void give_back_logs() noexcept;
  bool fits(std::size_t more) const noexcept {
    if (more > settings_.memory_bytes) return false;
    if (settings_.backend != nullptr) return fits_elsewhere(more);
    return old_used() + nursery_used() + buffer_bytes_ <= half_bytes(more);
  }

  // Of a backend (backend.cpp).
  bool collect_elsewhere(Mutator& mutator, Request* request);
  void keep_strong();
  void drop_dead();
  bool fits_elsewhere(std::size_t more) const noexcept;
  void limit_elsewhere() noexcept;

  // These collect if they must, and throw OutOfMemory.
  void refill(Mutator& mutator, std::size_t bytes);
  Object* allocate_large(Mutator& mutator, std::size_t bytes, const Descriptor& descriptor);
  Object* allocate_apart(Mutator& mutator, std::size_t bytes, const Descriptor& descriptor);
  void obtain(Mutator& mutator, Request& request, bool full);
  [[noreturn]] void refuse(std::size_t bytes);

  bool take_buffer(Mutator& mutator, std::size_t bytes) noexcept;
  // returns false if another thread has collected meanwhile instead. After a collection of its own the request is taken
  // or refused
  bool collect(Mutator& mutator, bool full, Request* request = nullptr);
  void collect_fully(bool last);
  OutOfMemory refusal(const Request::Needs& needs) const noexcept;
  // What a Mutator knows alone, when it ends. With the mutex.
  void take_over(Mutator& mutator) noexcept;

  Settings settings_;
  const bool nursery_follows_;  // the memory: its size was not set
  std::size_t buffer_bytes_;
  World world_;
  std::mutex mutex_;
  std::byte *nursery_start_ = nullptr, *nursery_top_ = nullptr, *nursery_end_ = nullptr;
  std::size_t reserved_half_ = 0, span_bytes_ = 0;
  Half old_, other_;
  LargeObjects large_;
  std::size_t log_bytes_ = 0;
  GlobalBase* globals_ = nullptr;
  OsVector<Finalizable> finalizable_, dead_;
  std::size_t old_finalizable_ = 0;    // of finalizable_: those that were there at the last collection
  std::size_t finalized_ = 0;          // of dead_: those whose finalizers have been called
  OsVector<Object*> remembered_;       // of threads that have ended
  OsVector<LogVisitor*> forgotten_;    // in the child of a fork: of threads that are not there
  Heap* next_heap_ = nullptr;          // in the list of all heaps
  OsVector<Mutator::Piece> returned_;  // of the nursery, from transactions that aborted
  Statistics statistics_;
};

}  // namespace loam::gc
