// The simulated processors: their number, on which one a thread runs, and its affinity.
#include "simulator/engine/access.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/hooks/exported.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace loam::simulator {
namespace {

constexpr std::uint64_t kYieldCycles = 500;

Thread* of_handle(pthread_t handle) {
  for (unsigned i = 0; i < thread_count; ++i)
    if (threads[i] != nullptr && threads[i]->handle == handle) return threads[i];
  return nullptr;
}

// returns 0 or an error number
int allow(Thread* thread, std::size_t bytes, const cpu_set_t* set) {
  leave_transaction();
  if (thread == nullptr) return ESRCH;
  if (thread != now.thread)
    fail("thread {} asks for a place for thread {}; only a thread's own place is simulated", now.thread->number,
         thread->number);
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  std::memcpy(&wanted, set, std::min(bytes, sizeof wanted));
  unsigned first = scheduler.cores();
  for (unsigned i = scheduler.cores(); i-- > 0;)
    if (CPU_ISSET(i, &wanted)) first = i;
  if (first == scheduler.cores()) return EINVAL;
  thread->allowed = wanted;
  if (!CPU_ISSET(thread->core, &wanted)) scheduler.migrate(first);
  return 0;
}

int allowed(const Thread* thread, std::size_t bytes, cpu_set_t* set) {
  if (thread == nullptr) return ESRCH;
  std::memset(set, 0, bytes);
  std::memcpy(set, &thread->allowed, std::min(bytes, sizeof thread->allowed));
  return 0;
}

int failed(int number) {
  if (number == 0) return 0;
  errno = number;
  return -1;
}

}  // namespace
}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int pthread_setaffinity_np(pthread_t handle, size_t bytes, const cpu_set_t* set) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_setaffinity_np)(handle, bytes, set);
  return allow(of_handle(handle), bytes, set);
}
LOAM_EXPORTED int pthread_getaffinity_np(pthread_t handle, size_t bytes, cpu_set_t* set) {
  if (now.thread == nullptr) return LOAM_REAL(pthread_getaffinity_np)(handle, bytes, set);
  return allowed(of_handle(handle), bytes, set);
}
LOAM_EXPORTED int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t* set) {
  if (now.thread == nullptr) return LOAM_REAL(sched_setaffinity)(process, bytes, set);
  return failed(allow(process == 0 ? now.thread : nullptr, bytes, set));
}
LOAM_EXPORTED int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* set) {
  if (now.thread == nullptr) return LOAM_REAL(sched_getaffinity)(process, bytes, set);
  return failed(allowed(process == 0 ? now.thread : nullptr, bytes, set));
}

LOAM_EXPORTED int sched_getcpu() {
  if (now.thread == nullptr) return LOAM_REAL(sched_getcpu)();
  return static_cast<int>(now.core->number);
}

LOAM_EXPORTED int sched_yield() {
  if (now.thread == nullptr) return LOAM_REAL(sched_yield)();
  leave_transaction();
  now.core->clock += kYieldCycles;
  if (checker != nullptr) checker->pause();
  scheduler.yield();
  return 0;
}

// Also before the simulation begins: allocators ask in their constructors.
LOAM_EXPORTED long sysconf(int name) {
  if (settings.machine != nullptr && (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF))
    return the_machine().cores;
  return LOAM_REAL(sysconf)(name);
}
LOAM_EXPORTED int get_nprocs() {
  if (settings.machine == nullptr) return LOAM_REAL(get_nprocs)();
  return static_cast<int>(the_machine().cores);
}
LOAM_EXPORTED int get_nprocs_conf() {
  if (settings.machine == nullptr) return LOAM_REAL(get_nprocs_conf)();
  return static_cast<int>(the_machine().cores);
}
