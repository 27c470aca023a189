#include "simulator/posix/clocks.hpp"

#include "simulator/engine/access.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/start.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/hooks/exported.hpp"

#include <sys/time.h>
#include <unistd.h>
#include <cerrno>

namespace loam::simulator {
namespace {

// When the simulated machine was switched on, of every clock but those of processor time: 1000 s, and for the calendar
// the first second of 2024.
constexpr std::uint64_t kStartNs = 1000 * kNsPerSecond;
constexpr std::uint64_t kCalendarNs = 1'704'067'200 * kNsPerSecond;
// A call of a clock takes some instructions of libc and the kernel's page.
constexpr std::uint64_t kClockCycles = 50;

std::uint64_t base_ns(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ? kCalendarNs : kStartNs;
}

bool is_processor_time(clockid_t clock) {
  return clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
}

std::uint64_t ns_in(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

int sleep_until(std::uint64_t cycles) {
  leave_transaction();
  spend(the_machine().block_cycles);
  now.thread->waits_for = "a time";
  now.thread->waits_at = nullptr;
  scheduler.block(cycles);
  return 0;
}

}  // namespace

std::uint64_t clock_ns(clockid_t clock) {
  if (now.thread == nullptr) return is_processor_time(clock) ? 0 : base_ns(clock);
  if (clock == CLOCK_THREAD_CPUTIME_ID) return ns_of(scheduler.cycles_of(*now.thread));
  if (clock == CLOCK_PROCESS_CPUTIME_ID) {
    std::uint64_t cycles = 0;
    for (unsigned i = 0; i < thread_count; ++i)
      if (threads[i] != nullptr) cycles += scheduler.cycles_of(*threads[i]);
    return ns_of(cycles);
  }
  return base_ns(clock) + ns_of(now.core->clock);
}

std::uint64_t cycles_until(clockid_t clock, const timespec& time) {
  const std::uint64_t ns = ns_in(time), base = base_ns(clock);
  return ns <= base ? 1 : cycles_of(ns - base) + 1;
}

std::uint64_t cycles_after(const timespec& duration) {
  const std::uint64_t cycles = cycles_of(ns_in(duration));
  return cycles > kNever - now.core->clock - 1 ? kNever - 1 : now.core->clock + cycles;
}

}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (now.thread == nullptr && !starting()) return LOAM_REAL(clock_gettime)(clock, time);
  spend(kClockCycles);
  const std::uint64_t ns = clock_ns(clock);
  *time = {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
  return 0;
}

LOAM_EXPORTED int gettimeofday(timeval* time, void* zone) noexcept {
  if (now.thread == nullptr && !starting()) return LOAM_REAL(gettimeofday)(time, zone);
  spend(kClockCycles);
  const std::uint64_t us = clock_ns(CLOCK_REALTIME) / 1000;
  *time = {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
  return 0;
}

LOAM_EXPORTED time_t time(time_t* at) noexcept {
  if (now.thread == nullptr && !starting()) return LOAM_REAL(time)(at);
  const auto seconds = static_cast<time_t>(clock_ns(CLOCK_REALTIME) / kNsPerSecond);
  if (at != nullptr) *at = seconds;
  return seconds;
}

LOAM_EXPORTED int nanosleep(const timespec* duration, timespec* rest) {
  if (now.thread == nullptr) return LOAM_REAL(nanosleep)(duration, rest);
  return sleep_until(cycles_after(*duration));
}

LOAM_EXPORTED int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* rest) {
  if (now.thread == nullptr) return LOAM_REAL(clock_nanosleep)(clock, flags, wanted, rest);
  if (is_processor_time(clock)) return ENOTSUP;
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  return sleep_until(absolute ? cycles_until(clock, *wanted) : cycles_after(*wanted));
}

LOAM_EXPORTED int usleep(useconds_t us) {
  if (now.thread == nullptr) return LOAM_REAL(usleep)(us);
  return sleep_until(cycles_after({static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)}));
}

LOAM_EXPORTED unsigned sleep(unsigned seconds) {
  if (now.thread == nullptr) return LOAM_REAL(sleep)(seconds);
  sleep_until(cycles_after({static_cast<time_t>(seconds), 0}));
  return 0;
}
