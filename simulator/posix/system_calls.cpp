// syscall(): programs and libraries use it for system calls that libc has no function for, and allocators for all of
// theirs. Calls that wait, or that ask for time, random numbers, threads or processors, are simulated; all others go to the
// kernel.
#include "simulator/engine/access.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/kernel.hpp"
#include "simulator/engine/scheduler.hpp"
#include "simulator/engine/start.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/engine/waiters.hpp"
#include "simulator/hooks/exported.hpp"
#include "simulator/posix/chance.hpp"
#include "simulator/posix/clocks.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdarg>

namespace loam::simulator {
namespace {

// What membarrier and mprotect cost: they interrupt every other core.
constexpr std::uint64_t kInterruptAllCycles = 4'000;
constexpr std::uint64_t kSystemCallCycles = 300;

long wait_on_futex(const int* word, int operation, int expected, const timespec* time, const void* caller) {
  spend(the_machine().block_cycles);
  access(word, sizeof *word, Kind::atomic, caller);
  if (*word != expected) return -EAGAIN;
  std::uint64_t until = kNever;
  if (time != nullptr) {
    const bool absolute = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    const clockid_t clock = (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    until = absolute ? cycles_until(clock, *time) : cycles_after(*time);
  }
  const bool woken = wait_in(waiters_at(word), word, "the futex", until);
  // Whoever wakes may be code that is not seen, as libstdc++'s of a static variable: what it did happens before.
  if (checker != nullptr) checker->memory().acquired(now.thread->number, reinterpret_cast<std::uintptr_t>(word));
  return woken ? 0 : -ETIMEDOUT;
}

long futex(const long* a, const void* caller) {
  const auto* const word = reinterpret_cast<const int*>(a[0]);
  const int operation = static_cast<int>(a[1]);
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return wait_on_futex(word, operation, static_cast<int>(a[2]), reinterpret_cast<const timespec*>(a[3]), caller);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      spend(kSystemCallCycles);
      if (checker != nullptr) checker->memory().released(now.thread->number, reinterpret_cast<std::uintptr_t>(word));
      return wake_all(waiters_at(word), static_cast<unsigned>(a[2]));
    }
    default:
      fail("futex operation {} is not simulated", operation & FUTEX_CMD_MASK);
  }
}

// Whether a thread has this number, or may have it: the process's own is that of the main thread before it was simulated.
bool thread_exists(long id) {
  const long number = id - kFirstThreadId;
  if (number < 0 || number >= static_cast<long>(kThreadsMax) || id == kernel(SYS_getpid))
    return kernel(SYS_tgkill, kernel(SYS_getpid), id, 0) == 0;
  const Thread* const thread = threads[number];
  return thread != nullptr && thread->state != ThreadState::ended;
}

// returns whether it is simulated
bool simulate(long number, const long* a, long& result, const void* caller) {
  switch (number) {
    case SYS_futex:
      result = futex(a, caller);
      return true;
    case SYS_getrandom:
      fill_with_chance(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]));
      result = a[1];
      return true;
    case SYS_gettid:
      result = kFirstThreadId + static_cast<long>(now.thread->number);
      return true;
    case SYS_tgkill:
      if (a[2] != 0) return false;  // a signal, not the question whether the thread is there
      result = thread_exists(a[1]) ? 0 : -ESRCH;
      return true;
    case SYS_getcpu:
      if (a[0] != 0) *reinterpret_cast<unsigned*>(a[0]) = now.core->number;
      if (a[1] != 0) *reinterpret_cast<unsigned*>(a[1]) = the_machine().node_of(now.core->number);
      result = 0;
      return true;
    case SYS_sched_yield:
      result = sched_yield();
      return true;
    case SYS_membarrier:  // one core at a time runs: there is nothing to order, only the time to spend
      spend(kInterruptAllCycles);
      if (checker != nullptr) checker->barrier(reinterpret_cast<std::uintptr_t>(caller));
      result = 0;
      return true;
    case SYS_perf_event_open:
      result = -ENOENT;
      return true;  // the host's counters count the simulator
    default:
      return false;
  }
}

}  // namespace
}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  leave_transaction();
  long result = 0;
  if (starting() && number == SYS_getrandom) {
    fill_with_chance(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]));
    result = a[1];
  } else if (now.thread == nullptr || !simulate(number, a, result, LOAM_CALLER))
    result = kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
