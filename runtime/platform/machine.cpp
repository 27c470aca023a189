#include "runtime/platform/machine.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/keep_errno.hpp"

#include <cerrno>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

namespace loam::platform {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

std::uint64_t read_clock_ns(clockid_t clock) noexcept {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kNsPerSecond + static_cast<std::uint64_t>(t.tv_nsec);
}

timespec to_timespec(std::uint64_t duration_ns) noexcept {
  return {static_cast<time_t>(duration_ns / kNsPerSecond), static_cast<long>(duration_ns % kNsPerSecond)};
}

}  // namespace

std::uint64_t monotonic_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }
std::uint64_t thread_cpu_ns() noexcept { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void sleep_ns(std::uint64_t duration_ns) noexcept {
  timespec rest = to_timespec(duration_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

void yield() noexcept { sched_yield(); }

unsigned cpu_number() noexcept {
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<unsigned>(cpu);
}

unsigned thread_id() noexcept { return static_cast<unsigned>(syscall(SYS_gettid)); }

unsigned process_id() noexcept { return static_cast<unsigned>(getpid()); }

bool thread_exists(unsigned thread) noexcept {
  const KeepErrno keep;
  return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) noexcept {
  const timespec timeout = to_timespec(timeout_ns);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == ~0ULL ? nullptr : &timeout, nullptr, 0);
}

void futex_wake(const std::atomic<std::uint32_t>& word, unsigned waiters) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, waiters > INT_MAX ? INT_MAX : waiters, nullptr, nullptr, 0);
}

int open_event_counter(std::uint32_t type, std::uint64_t config) noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

void random_bytes(std::span<std::byte> out) noexcept {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      LOAM_CHECK(errno == EINTR, "random_bytes: getrandom failed (errno {})", errno);
      continue;
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::uintptr_t kept_stack(const Checkpoint& checkpoint) noexcept {
  if (!returns_again(checkpoint)) return reinterpret_cast<std::uintptr_t>(checkpoint.stack_pointer);
  return reinterpret_cast<const Caller*>(static_cast<const std::byte*>(checkpoint.stack_pointer) - 1)->stack_pointer;
}

bool encloses(const Checkpoint& checkpoint, const void* frame) noexcept {
  if (returns_again(checkpoint)) return true;
  if (reinterpret_cast<std::uintptr_t>(frame) >= reinterpret_cast<std::uintptr_t>(checkpoint.stack_pointer))
    return false;
#ifdef LOAM_LIBC_CHECKPOINT
  return true;
#else
  return return_address_is_there(checkpoint);
#endif
}

bool in_signal_handler(const Checkpoint& checkpoint) noexcept {
  if (returns_again(checkpoint)) return false;
  struct Walk {
    std::uintptr_t end;
    bool found;
  } walk{reinterpret_cast<std::uintptr_t>(checkpoint.stack_pointer), false};
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* argument) {
        Walk& state = *static_cast<Walk*>(argument);
        int before_instruction = 0;  // set where a frame was interrupted instead of having called
        _Unwind_GetIPInfo(context, &before_instruction);
        if (before_instruction != 0) state.found = true;
        return state.found || _Unwind_GetCFA(context) > state.end ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &walk);
  return walk.found;
}

#ifdef LOAM_LIBC_CHECKPOINT
int run_attempt(Checkpoint& checkpoint, AttemptBody body, void* argument) {
  checkpoint.stack_pointer = __builtin_frame_address(0);
  const int code = _setjmp(checkpoint.buffer);
  if (code == 0) body(checkpoint, argument);
  return code;
}

void restart(Checkpoint& checkpoint, int code) noexcept {
#ifdef LOAM_SIMULATED
  loam_simulator_restart();
#endif
  std::longjmp(checkpoint.buffer, code);
}
#endif

}  // namespace loam::platform
