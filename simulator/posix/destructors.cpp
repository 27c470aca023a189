// libc would call them in the donor, at the same time as the program. So libc gets keys without destructors, and the
// simulator keeps the destructors here.
#include "simulator/posix/destructors.hpp"

#include "simulator/engine/access.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/hooks/exported.hpp"

#include <pthread.h>
#include <climits>

namespace loam::simulator {
namespace {

void (*of_keys[PTHREAD_KEYS_MAX])(void*) = {};

bool run_those_of_keys() {
  bool any = false;
  for (unsigned key = 0; key < PTHREAD_KEYS_MAX; ++key) {
    if (of_keys[key] == nullptr) continue;
    void* const value = pthread_getspecific(key);
    if (value == nullptr) continue;
    pthread_setspecific(key, nullptr);
    of_keys[key](value);
    any = true;
  }
  return any;
}

}  // namespace

void run_destructors(Thread& thread) {
  while (AtEnd* const one = thread.at_end) {
    thread.at_end = one->next;
    one->function(one->argument);
    delete one;
  }
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && run_those_of_keys(); ++round) {
  }
}

}  // namespace loam::simulator

using namespace loam::simulator;

extern "C" int __cxa_thread_atexit_impl(void (*function)(void*), void* argument, void* object);

// Keys that were made before the simulation began count as well: the program's objects make them in constructors.
LOAM_EXPORTED int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  if (settings.machine == nullptr) return LOAM_REAL(pthread_key_create)(key, destructor);
  const int failure = LOAM_REAL(pthread_key_create)(key, nullptr);
  if (failure == 0) of_keys[*key] = destructor;
  return failure;
}

LOAM_EXPORTED int pthread_key_delete(pthread_key_t key) {
  if (key < PTHREAD_KEYS_MAX) of_keys[key] = nullptr;
  return LOAM_REAL(pthread_key_delete)(key);
}

LOAM_EXPORTED int __cxa_thread_atexit_impl(void (*function)(void*), void* argument, void* object) {
  if (now.thread == nullptr || now.thread->number == 0)
    return LOAM_REAL(__cxa_thread_atexit_impl)(function, argument, object);
  now.thread->at_end = new AtEnd{function, argument, now.thread->at_end};
  return 0;
}
