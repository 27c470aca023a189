#include "simulator/engine/stuck.hpp"

#include "simulator/engine/checker.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/scheduler.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/waiters.hpp"

namespace loam::simulator {
namespace {

void say_threads() {
  for (unsigned i = 0; i < thread_count; ++i) {
    const Thread* const thread = threads[i];
    if (thread == nullptr || thread->state == ThreadState::ended) continue;
    if (thread->state == ThreadState::blocked || thread->waits_in != nullptr) {
      const Thread* const holder = thread->waits_in != nullptr ? thread->waits_in->owner : nullptr;
      if (holder != nullptr)
        say("  thread {} on core {} waits for {} at {}, which thread {} holds", i, thread->core, thread->waits_for,
            thread->waits_at, holder->number);
      else
        say("  thread {} on core {} waits for {} at {}", i, thread->core, thread->waits_for, thread->waits_at);
    } else {
      say("  thread {} on core {} runs", i, thread->core);
    }
  }
}

}  // namespace

void fail_deadlocked() {
  say("deadlock: every thread of the program waits for another");
  say_threads();
  if (checker != nullptr) checker->say_how();
  leave();
}

void fail_stuck(std::uint64_t cycles) {
  say("the program did not end within {} simulated cycles (LOAM_SIM_CYCLES_MAX={}): livelock, or too much work", cycles,
      settings.cycles_max);
  say_threads();
  if (checker != nullptr)
    checker->say_how();
  else if (!the_machine().interrupts_take_time())
    say("  threads that hinder each other in step may go on for ever: this machine has no interrupts "
        "(interrupt.every_cycles, interrupt.cycles)");
  leave();
}

}  // namespace loam::simulator
