// Connects heaps with threads and with the process.
//   thread exit   A thread that attaches a heap sets the value of a key; the key's destructor hands the heap over.
//                 Destructors of other keys that run later may allocate, and the thread attaches again. The system
//                 repeats the round of destructors up to PTHREAD_DESTRUCTOR_ITERATIONS times while there are values, so
//                 our destructor sets its value again: it runs in each round, hands over what was attached since, and
//                 knows the last one. From then on no heap stays with the thread.
//   fork          No code runs before it or in the parent; a handler repairs the heap in the child. The handler is
//                 registered at the first attachment, before those of almost all other libraries. So it runs before
//                 handlers that may allocate.
//   helper        With LOAM_MALLOC_BACKGROUND=1 a thread returns free memory to the system every half second. A child
//                 of a fork has no helper until it attaches another thread or takes a long block, because a fork may
//                 happen in a signal handler, where no thread can be made.
//   start, end    One constructor and one destructor. All other data is initialised by constants, so the heap works
//                 before the constructor and after the destructor.
#include "runtime/malloc/process.hpp"

#include "runtime/malloc/apart.hpp"
#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/guard_pages.hpp"
#include "runtime/malloc/last_words.hpp"
#include "runtime/malloc/message.hpp"
#include "runtime/malloc/report.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <climits>
#include <cstdint>

namespace loam::malloc {
namespace {

enum class Phase : std::uint8_t {
  before,
  starting,  // in one thread, which may allocate meanwhile
  ready,
  keyless,  // the system has no key left: only new threads find the heaps of ended ones
};
constinit std::atomic<Phase> phase{Phase::before};
constinit pthread_key_t thread_end{};
constinit thread_local int rounds = 0;  // of destructors that the calling thread has been through

constexpr std::uint64_t kHelperRestNs = 500'000'000;
constinit std::atomic<bool> helper_is_due{false};  // asked for, and not there

void* help(void*) {
  for (;;) {
    platform::sleep_ns(kHelperRestNs);
    Heap::give_what_rests();
  }
}

void in_child() noexcept {
  Heap::after_fork_in_child();
  helper_is_due.store(settings().background, std::memory_order_relaxed);
}

void end_of_thread(void* value) noexcept {
  // A destructor that calls pthread_exit() makes the system begin to count again: then there are more rounds than this.
  const bool is_last = ++rounds >= PTHREAD_DESTRUCTOR_ITERATIONS;
  Heap::thread_exit(is_last);
  if (!is_last) pthread_setspecific(thread_end, value);
}

void start() noexcept {
  Phase expected = Phase::before;
  // acq_rel: who finds the process started finds the key (start.A, with the release below).
  if (!phase.compare_exchange_strong(expected, Phase::starting, std::memory_order_acq_rel)) return;
  if (pthread_atfork(nullptr, nullptr, in_child) != 0)
    say(STDERR_FILENO, "loam malloc: no memory for the fork handler; a child of this process may hang\n");
  const bool made = pthread_key_create(&thread_end, end_of_thread) == 0;
  if (!made)
    say(STDERR_FILENO,
        "loam malloc: the process has used up its thread keys; memory of ended threads is reused late\n");
  // start.A (publishes): the key.
  phase.store(made ? Phase::ready : Phase::keyless, std::memory_order_release);
}

[[gnu::constructor(101)]] void at_start() noexcept {
  note_thread();  // also for a heap that was attached by start() itself
  complain_about_settings();
  if (settings().statistics_at_exit) keep_standard_error();
  if (apart()) begin_apart();
  if (settings().guard_ms != 0) {
    watch_guard_pages();
    Heap::begin_samples();
  }
  helper_is_due.store(settings().background, std::memory_order_relaxed);
  keep_helper();
}

[[gnu::destructor(101)]] void at_end() noexcept {
  Heap::check_what_waits();
  if (apart()) end_apart();
  if (settings().statistics_at_exit) write_summary(descriptor_for_last_words());
}

}  // namespace

void note_thread() noexcept {
  // acquire: pairs with start.A.
  if (phase.load(std::memory_order_acquire) == Phase::before) [[unlikely]]
    start();
  // Not while starting: there is no key yet. The call of start() that is under way comes here when it is done.
  if (phase.load(std::memory_order_acquire) == Phase::ready) pthread_setspecific(thread_end, &thread_end);
  keep_helper();
}

void keep_helper() noexcept {
  // relaxed: of the threads that find it due one makes it.
  if (!helper_is_due.load(std::memory_order_relaxed) || !helper_is_due.exchange(false, std::memory_order_relaxed))
    return;
  // It takes no signal: the program's handlers run in the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, help, nullptr) != 0)
    say(STDERR_FILENO,
        "loam malloc: no thread for LOAM_MALLOC_BACKGROUND=1; memory goes back when the program allocates\n");
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace loam::malloc
