#include "runtime/gc/fork.hpp"

#include "runtime/base/check.hpp"
#include "runtime/gc/heap.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace loam::gc {
namespace {

// Held from before a fork until after it, so that no heap begins or ends meanwhile.
constinit std::mutex mutex;
constinit Heap* heaps = nullptr;

// A fork that holds the mutex may wait for this thread to stop.
void lock_list() {
  while (!mutex.try_lock()) {
    World::poll_all_of_this_thread();
    std::this_thread::yield();
  }
}

template <class F>
void for_each(F&& f) {
  for (Heap* heap = heaps; heap != nullptr; heap = heap->next_heap()) f(*heap);
}

// No lock of a heap is held while another heap's threads stop: they may need it until then.
void before() {
  lock_list();
  for_each([](Heap& heap) { heap.world().stop_for_fork(); });
  for_each([](Heap& heap) { heap.lock_for_fork(); });
}

void release(bool in_child) {
  for_each([&](Heap& heap) { heap.resume_after_fork(in_child); });
  mutex.unlock();
}

void after_in_parent() { release(false); }

void after_in_child() {
  for_each([](Heap& heap) { heap.forget_other_threads(); });
  release(true);
  for_each([](Heap& heap) { heap.undo_forgotten(); });
}

void watch() {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) return;  // relaxed: the loader calls it first, in one thread
  LOAM_CHECK(pthread_atfork(before, after_in_parent, after_in_child) == 0, "gc: no memory for the handlers of fork()");
}

[[gnu::constructor]] void watch_early() { watch(); }

}  // namespace

namespace forks {

void add(Heap& heap) {
  watch();  // the constructor of a static object may make a heap before watch_early() runs
  lock_list();
  heap.next_heap() = heaps;
  heaps = &heap;
  mutex.unlock();
}

void remove(Heap& heap) noexcept {
  lock_list();
  Heap** link = &heaps;
  while (*link != &heap) link = &(*link)->next_heap();
  *link = heap.next_heap();
  mutex.unlock();
}

}  // namespace forks

// In the child, with the locks. Its destructors never run, so what a Mutator knows alone is kept here.
void Heap::forget_other_threads() {
  auto& mutators = world_.mutators();
  for (std::size_t i = 0; i < mutators.size(); ++i) {
    Mutator& other = *mutators[i];
    if (World::is_of_this_thread(other)) continue;
    take_over(other);
    if (other.logs() != nullptr) forgotten_.push(other.logs());
    mutators.remove_unordered(i--);
  }
}

// Without locks: this takes them.
void Heap::undo_forgotten() {
  while (!forgotten_.empty()) forgotten_.pop()->forget();
}

}  // namespace loam::gc
