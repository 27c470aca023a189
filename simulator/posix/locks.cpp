// Mutexes, read-write locks and spin locks: their state is in the simulator's own queues. Each operation makes one
// simulated access to the lock's line, as libc's locks do.
#include "simulator/posix/locks.hpp"
#include "simulator/engine/access.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/engine/waiters.hpp"
#include "simulator/hooks/exported.hpp"
#include "simulator/posix/clocks.hpp"

#include <pthread.h>
#include <cerrno>

namespace loam::simulator {
namespace {

constexpr unsigned kLockBytes = 4;

// A lock is libc's business, which a rollback would not undo: a transaction that comes here aborts.
void touch(const void* lock, const void* caller) {
  leave_transaction();
  access(lock, kLockBytes, Kind::atomic, caller);
}

// libc keeps the kind in the two lowest bits of this member, whatever the kind was made by.
int kind_of(const pthread_mutex_t* mutex) { return mutex->__data.__kind & 3; }

int lock(pthread_mutex_t* mutex, std::uint64_t until, const void* caller) {
  touch(mutex, caller);
  Waiters& queue = waiters_at(mutex);
  if (queue.owner == now.thread) {
    if (kind_of(mutex) == PTHREAD_MUTEX_RECURSIVE) {
      ++queue.count;
      return 0;
    }
    if (kind_of(mutex) == PTHREAD_MUTEX_ERRORCHECK && until != 0) return EDEADLK;
  }
  while (queue.owner != nullptr) {
    if (until == 0) {
      if (checker != nullptr) checker->pause(true);
      return EBUSY;
    }
    spend(the_machine().block_cycles);
    if (queue.owner == nullptr) break;
    if (!wait_in(queue, mutex, "the mutex", until)) return ETIMEDOUT;
    touch(mutex, caller);
  }
  queue.owner = now.thread;
  queue.count = 1;
  return 0;
}

int unlock(pthread_mutex_t* mutex, const void* caller) {
  touch(mutex, caller);
  Waiters& queue = waiters_at(mutex);
  if (queue.owner != now.thread && kind_of(mutex) != PTHREAD_MUTEX_TIMED_NP) return EPERM;
  if (queue.count > 1) {
    --queue.count;
    return 0;
  }
  queue.count = 0;
  queue.owner = nullptr;
  if (wake_one(queue) != nullptr) spend(the_machine().block_cycles);
  return 0;
}

int read_lock(pthread_rwlock_t* lock, bool may_wait, const void* caller) {
  touch(lock, caller);
  Waiters& queue = waiters_at(lock);
  while (queue.owner != nullptr) {
    if (!may_wait) return EBUSY;
    if (queue.owner == now.thread) return EDEADLK;
    spend(the_machine().block_cycles);
    if (queue.owner == nullptr) break;
    wait_in(queue, lock, "the read-write lock");
    touch(lock, caller);
  }
  ++queue.count;
  return 0;
}

int write_lock(pthread_rwlock_t* lock, bool may_wait, const void* caller) {
  touch(lock, caller);
  Waiters& queue = waiters_at(lock);
  while (queue.owner != nullptr || queue.count != 0) {
    if (!may_wait) return EBUSY;
    if (queue.owner == now.thread) return EDEADLK;
    spend(the_machine().block_cycles);
    if (queue.owner == nullptr && queue.count == 0) break;
    wait_in(queue, lock, "the read-write lock");
    touch(lock, caller);
  }
  queue.owner = now.thread;
  return 0;
}

}  // namespace

int lock_mutex(pthread_mutex_t* mutex, const void* caller) { return lock(mutex, kNever, caller); }
int unlock_mutex(pthread_mutex_t* mutex, const void* caller) { return unlock(mutex, caller); }

}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_lock)(mutex));
  return lock(mutex, kNever, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_trylock)(mutex));
  return lock(mutex, 0, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_timedlock)(mutex, until));
  return lock(mutex, cycles_until(CLOCK_REALTIME, *until), LOAM_CALLER);
}
LOAM_EXPORTED int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_clocklock)(mutex, clock, until));
  return lock(mutex, cycles_until(clock, *until), LOAM_CALLER);
}
LOAM_EXPORTED int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_unlock)(mutex));
  return unlock(mutex, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_mutex_destroy(pthread_mutex_t* mutex) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_mutex_destroy)(mutex));
  forget_waiters(mutex);
  return 0;
}

LOAM_EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_rdlock)(lock));
  return read_lock(lock, true, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_tryrdlock)(lock));
  return read_lock(lock, false, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_wrlock)(lock));
  return write_lock(lock, true, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_trywrlock)(lock));
  return write_lock(lock, false, LOAM_CALLER);
}
LOAM_EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_unlock)(lock));
  touch(lock, LOAM_CALLER);
  Waiters& queue = waiters_at(lock);
  if (queue.owner != nullptr)
    queue.owner = nullptr;
  else if (queue.count != 0)
    --queue.count;
  if (queue.count == 0) wake_all(queue);
  return 0;
}
LOAM_EXPORTED int pthread_rwlock_destroy(pthread_rwlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_rwlock_destroy)(lock));
  forget_waiters(lock);
  return 0;
}

// The word itself is the lock, as in libc: 1 free, 0 held.
LOAM_EXPORTED int pthread_spin_lock(pthread_spinlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_spin_lock)(lock));
  for (;;) {
    touch(const_cast<const int*>(lock), LOAM_CALLER);
    if (*lock != 0) break;
    do access(lock, kLockBytes, Kind::read, LOAM_CALLER);
    while (*lock == 0);
  }
  *lock = 0;
  return 0;
}
LOAM_EXPORTED int pthread_spin_trylock(pthread_spinlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_spin_trylock)(lock));
  touch(const_cast<const int*>(lock), LOAM_CALLER);
  if (*lock == 0) return EBUSY;
  *lock = 0;
  return 0;
}
LOAM_EXPORTED int pthread_spin_unlock(pthread_spinlock_t* lock) {
  LOAM_OUTSIDE(LOAM_REAL(pthread_spin_unlock)(lock));
  access(lock, kLockBytes, Kind::write, LOAM_CALLER);
  *lock = 1;
  return 0;
}
