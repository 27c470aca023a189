// How long single calls take, and whether a long one was the callee's doing or the kernel's.
//   A call that takes longer than 20 us is looked into: if the thread waited for a processor for half of that time or
//   more, by the kernel's own count, it was preempted. Such calls are counted apart, and their time is nobody's pause.
//   What the thread waited between timed calls must not be taken for it: the count is read again where long has passed
//   since the last timed call, and at least every millisecond of timed work.
//   Cost  two readings of the ticks, which wait for all before them, and two comparisons; a call that is looked into,
//   and each of those looks in between, some microseconds beside the measured time.
//   Not seen: interrupts, and the hypervisor that takes the whole processor away. Where the kernel counts no waiting,
//   no call is ever found preempted.
#pragma once

#include "runtime/platform/machine.hpp"
#include "workloads/harness/log_histogram.hpp"
#include "workloads/harness/run_delay.hpp"
#include "workloads/harness/tick_clock.hpp"

#include <cstdint>
#include <optional>

namespace loam::workloads::allocation {

// Of one function, in ticks. All zero bytes are valid, as of its histogram.
struct CallTimes {
  CallTimes& operator+=(const CallTimes& more) noexcept {
    all += more.all;
    preempted += more.preempted;
    return *this;
  }

  LogHistogram all;  // without those that were preempted
  std::uint64_t preempted = 0;
};

struct ThisThread {
  static std::uint64_t ticks() noexcept { return platform::ordered_ticks(); }
  static std::optional<std::uint64_t> run_delay_ns() noexcept { return this_thread_run_delay_ns(); }
};

// Times the calls of one thread. Source: where time and waiting are read, another one in tests.
template <class Source = ThisThread>
class CallTimer {
 public:
  static constexpr std::uint64_t kLongNs = 20'000, kRenewalNs = 1'000'000;

  explicit CallTimer(const TickClock& clock) noexcept
      : clock_(clock), long_(clock.ticks(kLongNs)), renewal_(clock.ticks(kRenewalNs)) {
    look();
  }

  template <class Call>
  [[gnu::always_inline]] void time(CallTimes& times, Call&& call) noexcept {
    std::uint64_t before = Source::ticks();
    if (before - last_ > long_ || before - looked_ > renewal_) [[unlikely]] {
      look();
      before = Source::ticks();
    }
    call();
    last_ = Source::ticks();
    if (last_ - before > long_) [[unlikely]]
      return add_long(times, last_ - before);
    times.all.add(last_ - before);
  }

 private:
  [[gnu::noinline]] void look() noexcept {
    waited_ns_ = Source::run_delay_ns();
    looked_ = last_ = Source::ticks();
  }

  [[gnu::noinline]] void add_long(CallTimes& times, std::uint64_t ticks) noexcept {
    const auto before = waited_ns_;
    look();
    const bool preempted =
        before && waited_ns_ && 2 * static_cast<double>(*waited_ns_ - *before) >= clock_.ns(static_cast<double>(ticks));
    if (preempted)
      ++times.preempted;
    else
      times.all.add(ticks);
  }

  const TickClock& clock_;
  const std::uint64_t long_, renewal_;
  std::optional<std::uint64_t> waited_ns_;
  std::uint64_t looked_ = 0, last_ = 0;
};

}  // namespace loam::workloads::allocation
