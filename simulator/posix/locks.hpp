// The functions of mutexes that conditions need.
#pragma once

#include <pthread.h>

namespace loam::simulator {

int lock_mutex(pthread_mutex_t* mutex, const void* caller);
int unlock_mutex(pthread_mutex_t* mutex, const void* caller);

}  // namespace loam::simulator
