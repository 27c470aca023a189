// How heaps follow threads and processes.
//   thread exit   A thread that attaches a heap sets the value of a key; the key's destructor hands the heap over.
//                 Destructors of other keys that run later may allocate: the thread attaches anew, which sets the value
//                 again, and the system goes round once more, PTHREAD_DESTRUCTOR_ITERATIONS times.
//   fork          Handlers stop the heap's shared parts around fork(). They are made known at the first attachment,
//                 before almost any other library's: those who register first lock last, when others that may allocate
//                 in their handlers have done so.
//   start, end    One constructor and one destructor; everything else is initialised by constants, so that the heap
//                 serves before the constructor runs and after the destructor.
#include "runtime/malloc/process.hpp"

#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/last_words.hpp"
#include "runtime/malloc/message.hpp"
#include "runtime/malloc/report.hpp"

#include <pthread.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>

namespace loam::malloc {
namespace {

enum class Phase : std::uint8_t {
  before,
  starting,  // in one thread, which may allocate meanwhile
  ready,
  keyless,  // the system has no key left: heaps of ended threads stay theirs
};
constinit std::atomic<Phase> phase{Phase::before};
constinit pthread_key_t thread_end{};

void end_of_thread(void*) noexcept { Heap::thread_exit(); }

void start() noexcept {
  Phase expected = Phase::before;
  // acq_rel: who finds the process started finds the key (start.A, with the release below).
  if (!phase.compare_exchange_strong(expected, Phase::starting, std::memory_order_acq_rel)) return;
  if (pthread_atfork(Heap::before_fork, Heap::after_fork_in_parent, Heap::after_fork_in_child) != 0)
    say(STDERR_FILENO, "loam malloc: no memory for the fork handlers; a child of this process may hang\n");
  const bool made = pthread_key_create(&thread_end, end_of_thread) == 0;
  if (!made)
    say(STDERR_FILENO, "loam malloc: the process has used up its thread keys; memory of ended threads is not reused\n");
  // start.A (publishes): the key.
  phase.store(made ? Phase::ready : Phase::keyless, std::memory_order_release);
}

[[gnu::constructor(101)]] void at_start() noexcept {
  note_thread();  // also for a heap that was attached by start() itself
  complain_about_settings();
  if (settings().statistics_at_exit) keep_standard_error();
}

[[gnu::destructor(101)]] void at_end() noexcept {
  if (settings().statistics_at_exit) write_summary(descriptor_for_last_words());
}

}  // namespace

void note_thread() noexcept {
  // acquire: pairs with start.A.
  if (phase.load(std::memory_order_acquire) == Phase::before) [[unlikely]]
    start();
  // Not while starting: there is no key yet. The call of start() that is under way comes here when it is done.
  if (phase.load(std::memory_order_acquire) == Phase::ready) pthread_setspecific(thread_end, &thread_end);
}

}  // namespace loam::malloc
