// Conditions, semaphores, barriers and pthread_once.
#include "simulator/engine/access.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/engine/waiters.hpp"
#include "simulator/hooks/exported.hpp"
#include "simulator/posix/clocks.hpp"
#include "simulator/posix/locks.hpp"

#include <pthread.h>
#include <semaphore.h>
#include <cerrno>

namespace loam::simulator {
namespace {

constexpr unsigned kWordBytes = 4;

void touch(const void* object, const void* caller) {
  leave_transaction();
  access(object, kWordBytes, Kind::atomic, caller);
}

// libc lets a condition choose its clock in attributes, of which the object keeps a bit.
clockid_t clock_of(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

// The mutex is given back and the thread queued without anybody in between: libc's condition promises the same.
int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t until, const void* caller) {
  touch(condition, caller);
  Waiters& queue = waiters_at(condition);
  ++now.thread->native;
  unlock_mutex(mutex, caller);
  --now.thread->native;
  const bool woken = wait_in(queue, condition, "the condition", until);
  const int failure = lock_mutex(mutex, caller);
  return failure != 0 ? failure : woken ? 0 : ETIMEDOUT;
}

// Words of a semaphore as libc has them: the value in the lower half.
unsigned& value_of(sem_t* semaphore) { return *reinterpret_cast<unsigned*>(semaphore); }

int take(sem_t* semaphore, std::uint64_t until, const void* caller) {
  touch(semaphore, caller);
  while (value_of(semaphore) == 0) {
    if (until == 0) {
      errno = EAGAIN;
      return -1;
    }
    spend(the_machine().block_cycles);
    if (value_of(semaphore) != 0) break;
    if (!wait_in(waiters_at(semaphore), semaphore, "the semaphore", until)) {
      errno = ETIMEDOUT;
      return -1;
    }
    touch(semaphore, caller);
  }
  --value_of(semaphore);
  return 0;
}

enum Once : int { kNotYet = 0, kRunning = 1, kDone = 2 };

}  // namespace
}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_wait)(condition, mutex));
  return wait(condition, mutex, kNever, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_timedwait)(condition, mutex, until));
  return wait(condition, mutex, cycles_until(clock_of(condition), *until), LOAM_CALLER);
}
LOAM_EXPORTED int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_clockwait)(condition, mutex, clock, until));
  return wait(condition, mutex, cycles_until(clock, *until), LOAM_CALLER);
}
LOAM_EXPORTED int pthread_cond_signal(pthread_cond_t* condition) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_signal)(condition));
  touch(condition, LOAM_CALLER);
  if (wake_one(waiters_at(condition)) != nullptr) spend(the_machine().block_cycles);
  return 0;
}
LOAM_EXPORTED int pthread_cond_broadcast(pthread_cond_t* condition) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_broadcast)(condition));
  touch(condition, LOAM_CALLER);
  if (wake_all(waiters_at(condition)) != 0) spend(the_machine().block_cycles);
  return 0;
}
LOAM_EXPORTED int pthread_cond_destroy(pthread_cond_t* condition) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_cond_destroy)(condition));
  forget_waiters(condition);
  return 0;
}

LOAM_EXPORTED int sem_wait(sem_t* semaphore) {
  LOAM_OUTSIDE(LOAM_REAL(sem_wait)(semaphore));
  return take(semaphore, kNever, LOAM_CALLER);
}
LOAM_EXPORTED int sem_trywait(sem_t* semaphore) {
  LOAM_OUTSIDE(LOAM_REAL(sem_trywait)(semaphore));
  return take(semaphore, 0, LOAM_CALLER);
}
LOAM_EXPORTED int sem_timedwait(sem_t* semaphore, const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(sem_timedwait)(semaphore, until));
  return take(semaphore, cycles_until(CLOCK_REALTIME, *until), LOAM_CALLER);
}
LOAM_EXPORTED int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(sem_clockwait)(semaphore, clock, until));
  return take(semaphore, cycles_until(clock, *until), LOAM_CALLER);
}
LOAM_EXPORTED int sem_post(sem_t* semaphore) {
  LOAM_OUTSIDE(LOAM_REAL(sem_post)(semaphore));
  touch(semaphore, LOAM_CALLER);
  ++value_of(semaphore);
  if (wake_one(waiters_at(semaphore)) != nullptr) spend(the_machine().block_cycles);
  return 0;
}
LOAM_EXPORTED int sem_destroy(sem_t* semaphore) {
  LOAM_OUTSIDE(LOAM_REAL(sem_destroy)(semaphore));
  forget_waiters(semaphore);
  return 0;
}

LOAM_EXPORTED int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                       unsigned count) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_barrier_init)(barrier, attributes, count));
  if (count == 0) return EINVAL;
  waiters_at(barrier) = {.limit = count};
  return 0;
}
LOAM_EXPORTED int pthread_barrier_wait(pthread_barrier_t* barrier) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_barrier_wait)(barrier));
  touch(barrier, LOAM_CALLER);
  Waiters& queue = waiters_at(barrier);
  if (++queue.count == queue.limit) {
    queue.count = 0;
    wake_all(queue);
    spend(the_machine().block_cycles);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  wait_in(queue, barrier, "the barrier");
  return 0;
}
LOAM_EXPORTED int pthread_barrier_destroy(pthread_barrier_t* barrier) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_barrier_destroy)(barrier));
  forget_waiters(barrier);
  return 0;
}

// The word itself says how far it is, as in libc, where bit 1 is "done".
LOAM_EXPORTED int pthread_once(pthread_once_t* once, void (*function)()) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_once)(once, function));
  access(once, kWordBytes, Kind::read, LOAM_CALLER);
  if ((*once & kDone) == 0) leave_transaction();
  while (*once == kRunning) wait_in(waiters_at(once), once, "pthread_once");
  if ((*once & kDone) != 0) return 0;
  *once = kRunning;
  try {
    function();
  } catch (...) {
    *once = kNotYet;
    wake_all(waiters_at(once));
    throw;
  }
  *once = kDone;
  wake_all(waiters_at(once));
  return 0;
}
