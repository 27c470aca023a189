#include "simulator/engine/watchdog.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/scheduler.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

namespace loam::simulator {
namespace {

constexpr long kPeriodS = 3;

std::uint64_t seen = 0;

// dlfcn's names of functions stay valid, and nothing here allocates.
void look(int, siginfo_t*, void* context) {
  const std::uint64_t before = seen;
  seen = progress;
  if (now.thread == nullptr || progress != before) return;
  const auto* const registers = static_cast<const ucontext_t*>(context);
  const auto at = reinterpret_cast<void*>(registers->uc_mcontext.gregs[REG_RIP]);
  Dl_info found{};
  const bool known = dladdr(at, &found) != 0;
  fail(
      "thread {} ran {} s without one simulated access, at {} ({} in {}): it computes without memory, or this code was "
      "compiled without instrumentation; build it with the preset sim",
      now.thread->number, kPeriodS, at, known && found.dli_sname != nullptr ? found.dli_sname : "?",
      known ? found.dli_fname : "?");
}

}  // namespace

std::uint64_t progress = 0;

void start_watchdog() {
  struct sigaction action{};
  action.sa_sigaction = look;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval period{{kPeriodS, 0}, {kPeriodS, 0}};
  setitimer(ITIMER_PROF, &period, nullptr);
}

}  // namespace loam::simulator
