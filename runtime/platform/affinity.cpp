#include "runtime/platform/affinity.hpp"

#include <pthread.h>
#include <sched.h>

namespace loam::platform {

std::size_t allowed_cpus(std::span<unsigned> out) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::pthread_getaffinity_np(::pthread_self(), sizeof set, &set) != 0) CPU_SET(0, &set);
  std::size_t count = 0;
  for (unsigned number = 0; number < CPU_SETSIZE && count < out.size(); ++number)
    if (CPU_ISSET(number, &set)) out[count++] = number;
  return count;
}

bool pin_this_thread(unsigned number) noexcept {
  if (number >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(number, &set);
  return ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0;
}

}  // namespace loam::platform
