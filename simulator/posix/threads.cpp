// Making, joining and ending threads.
#include "simulator/engine/access.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/fiber.hpp"
#include "simulator/engine/random.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/hooks/exported.hpp"
#include "simulator/posix/destructors.hpp"

#include <pthread.h>
#include <unistd.h>
#include <cerrno>

namespace loam::simulator {
namespace {

// A new thread begins up to so many cycles late, by the seed: threads of a real machine do not begin together either.
constexpr std::uint64_t kSkewCyclesMax = 5000, kCheckedSkewMax = 1000;

std::uint64_t made = 0;

void end_thread(void* result) {
  Thread& thread = *now.thread;
  thread.result = result;
  run_destructors(thread);
  if (thread.joiner != nullptr) scheduler.wake(*thread.joiner, now.core->clock + the_machine().wake_cycles);
  scheduler.end();
}

void first_of_thread() {
  scheduler.after_switch();
  end_thread(now.thread->start(now.thread->argument));
}

unsigned free_number() {
  unsigned number = 0;
  while (number < thread_count && threads[number] != nullptr) ++number;
  if (number == kThreadsMax) fail("more than {} threads at a time", kThreadsMax);
  if (number == thread_count) ++thread_count;
  return number;
}

Thread* found(pthread_t handle) {
  for (unsigned i = 0; i < thread_count; ++i)
    if (threads[i] != nullptr && threads[i]->handle == handle) return threads[i];
  return nullptr;
}

void reap(Thread& thread) {
  const Native native;
  end_fiber(thread);
}

int join(pthread_t handle, void** result, std::uint64_t until) {
  leave_transaction();
  Thread* const thread = found(handle);
  if (thread == nullptr) return ESRCH;
  if (thread->detached || thread->joiner != nullptr) return EINVAL;
  if (thread == now.thread) return EDEADLK;
  if (thread->state != ThreadState::ended) {
    if (until == 0) return EBUSY;
    spend(the_machine().block_cycles);
  }
  if (thread->state != ThreadState::ended) {
    thread->joiner = now.thread;
    now.thread->waits_for = "the end of the thread";
    now.thread->waits_at = thread;
    scheduler.block();
  }
  if (checker != nullptr) checker->memory().joined(now.thread->number, thread->number);
  if (result != nullptr) *result = thread->result;
  reap(*thread);
  forget(*thread);
  return 0;
}

int create(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  leave_transaction();
  spend(0);  // the others' turn first, if it is due
  auto* const thread = new Thread;
  thread->start = start;
  thread->argument = argument;
  thread->allowed = now.thread->allowed;
  int detached = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr) pthread_attr_getdetachstate(attributes, &detached);
  thread->detached = detached == PTHREAD_CREATE_DETACHED;
  int failure = 0;
  {
    const Native native;
    failure = make_fiber(*thread, attributes, first_of_thread);
  }
  if (failure != 0) {
    delete thread;
    return failure;
  }
  *handle = thread->handle;
  thread->number = free_number();
  threads[thread->number] = thread;
  if (checker != nullptr) checker->spawned(thread->number, now.thread->number);
  const std::uint64_t skew = seeded("skew", made++) % (checker != nullptr ? kCheckedSkewMax : kSkewCyclesMax);
  // Where orders are checked, threads begin together: small pieces would be over before the next one began.
  const std::uint64_t spawn = checker != nullptr ? 0 : kSpawnCycles;
  scheduler.place(*thread, now.core->clock + spawn + skew);
  spend(spawn);
  return 0;
}

[[noreturn]] void refuse_child(const char* call) {
  fail(
      "thread {} calls {}, which is not simulated: the process has one operating system thread for all of its own; "
      "use threads instead, or run it on the host",
      now.thread->number, call);
}

}  // namespace
}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                                 void* argument) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_create)(handle, attributes, start, argument);
  return create(handle, attributes, start, argument);
}

LOAM_EXPORTED int pthread_join(pthread_t handle, void** result) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_join)(handle, result);
  return join(handle, result, kNever);
}

LOAM_EXPORTED int pthread_tryjoin_np(pthread_t handle, void** result) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_tryjoin_np)(handle, result);
  return join(handle, result, 0);
}

LOAM_EXPORTED int pthread_detach(pthread_t handle) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_detach)(handle);
  Thread* const thread = found(handle);
  if (thread == nullptr) return ESRCH;
  if (thread->detached) return EINVAL;
  thread->detached = true;
  if (thread->state == ThreadState::ended) {
    reap(*thread);
    forget(*thread);
  }
  return 0;
}

// Ends the thread without unwinding its stack: C++ destructors of its frames do not run.
LOAM_EXPORTED void pthread_exit(void* result) {
  if (now.thread == nullptr) LOAM_REAL(pthread_exit)(result);
  if (now.thread->number == 0) fail("pthread_exit in the main thread is not simulated; return from main() instead");
  end_thread(result);
  __builtin_unreachable();
}

LOAM_EXPORTED int pthread_cancel(pthread_t handle) {
  if (now.thread != nullptr) fail("pthread_cancel is not simulated");
  return LOAM_REAL(pthread_cancel)(handle);
}

LOAM_EXPORTED pid_t fork() {
  if (now.thread != nullptr) refuse_child("fork");
  return LOAM_REAL(fork)();
}

// A child of vfork runs on the stack of its caller, which libc's function returns to twice; so this one could not call
// it in its place. Before the simulation begins fork does what it promises, but that the caller does not wait.
LOAM_EXPORTED pid_t vfork() {
  if (now.thread != nullptr) refuse_child("vfork");
  return LOAM_REAL(fork)();
}

LOAM_EXPORTED pid_t gettid() {
  if (now.thread == nullptr) return LOAM_REAL(gettid)();
  return static_cast<pid_t>(kFirstThreadId + now.thread->number);
}
