#include "simulator/engine/scheduler.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/fiber.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/stuck.hpp"
#include "simulator/engine/transactions.hpp"

#include <algorithm>

namespace loam::simulator {

Now now;
Scheduler scheduler;
Thread* threads[kThreadsMax];
unsigned thread_count = 0;

void forget(Thread& thread) {
  threads[thread.number] = nullptr;
  delete thread.transaction;
  delete &thread;
}

void Scheduler::start(const Machine& machine, std::uint64_t quantum, Thread& main) noexcept {
  machine_ = &machine;
  cores_ = machine.cores;
  quantum_ = quantum;
  earliest_.init(cores_);
  for (unsigned i = 0; i < kCoresMax; ++i) {
    all_[i].number = i;
    all_[i].interrupt_at = next_interrupt(all_[i]);
  }
  Core& core = all_[0];
  core.threads = 1;
  core.running = core.last = &main;
  main.state = ThreadState::running;
  earliest_.set(0, 0);
  now.core = &core;
  now.thread = &main;
  now.limit = std::min(core.interrupt_at, settings.cycles_max + 1);
}

void Scheduler::enqueue(Thread& thread, Core& core) noexcept {
  thread.state = ThreadState::ready;
  Thread** at = &core.queue;
  while (*at != nullptr) at = &(*at)->queue_next;
  thread.queue_next = nullptr;
  *at = &thread;
}

void Scheduler::unqueue(Thread& thread, Core& core) noexcept {
  for (Thread** at = &core.queue; *at != nullptr; at = &(*at)->queue_next)
    if (*at == &thread) {
      *at = thread.queue_next;
      return;
    }
}

Thread* Scheduler::first_runnable(const Core& core) noexcept {
  Thread* found = core.queue;
  for (Thread* one = found; one != nullptr; one = one->queue_next)
    if (one->runnable_at < found->runnable_at) found = one;
  return found;
}

Thread* Scheduler::first_due(const Core& core) noexcept {
  Thread* found = core.queue;
  for (Thread* one = found; one != nullptr; one = one->queue_next)
    if (one->due_at < found->due_at) found = one;
  return found;
}

void Scheduler::set_key(const Core& core) noexcept {
  std::uint64_t time = kNever;
  if (core.running != nullptr) {
    time = core.clock;
  } else if (const Thread* first = first_runnable(core)) {
    time = std::max(core.clock, first->runnable_at);
  }
  earliest_.set(core.number, time);
}

// The core, which runs nobody, takes one of its queue.
void Scheduler::dispatch(Core& core, Thread& thread) noexcept {
  unqueue(thread, core);
  if (core.clock < thread.runnable_at) {
    core.clock = thread.runnable_at;
    core.interrupt_at = next_interrupt(core);  // those of an idle core cost nothing
  }
  if (thread.waits_in != nullptr) thread.timed_out = true;  // nobody woke it: its time came
  if (core.last != &thread) core.clock += kExchangeCycles;
  core.last = core.running = &thread;
  thread.state = ThreadState::running;
  thread.began_at = core.clock;
  set_key(core);
}

// The core's thread goes back into the queue for a time slice, in favour of another.
void Scheduler::hand_over(Core& core, Thread& thread) noexcept {
  Thread& before = *core.running;
  interrupt_transaction(before);
  release(core);
  before.runnable_at = core.clock;
  before.due_at = core.clock + kSliceCycles;
  enqueue(before, core);
  dispatch(core, thread);
}

// Its thread no longer runs.
void Scheduler::release(Core& core) noexcept {
  core.running->cycles += core.clock - core.running->began_at;
  core.running = nullptr;
}

// One for all that were due, if it was in native code for long.
void Scheduler::interrupt(Core& core) noexcept {
  core.interrupt_at = next_interrupt(core);
  core.clock += machine_->interrupt_cycles;
  set_key(core);
}

std::uint64_t Scheduler::next_interrupt(const Core& core) const noexcept {
  if (!machine_->interrupts_take_time()) return kNever;
  return machine_->next_interrupt(core.number, core.clock);
}

void Scheduler::go() {
  set_key(*now.core);
  if (decide_ != nullptr) return go_as_decided();
  for (;;) {
    const auto [chosen, first, second] = earliest_.find();
    if (first == kNever) fail_deadlocked();
    if (first > settings.cycles_max) fail_stuck(first);
    Core& core = all_[chosen];
    if (core.running == nullptr) {
      dispatch(core, *first_runnable(core));
      continue;  // its clock may have moved
    }
    Thread* const due = first_due(core);
    if (due != nullptr && due->due_at <= core.clock) {
      hand_over(core, *due);
      continue;
    }
    if (core.interrupt_at <= core.clock) {
      interrupt(core);
      continue;
    }
    now.next = second;
    now.limit = std::min({second == kNever ? kNever : second + quantum_, due == nullptr ? kNever : due->due_at,
                          core.interrupt_at, settings.cycles_max + 1});
    return go_on(core);
  }
}

void Scheduler::go_as_decided() {
  Thread* const to = decide_();
  if (to == nullptr) fail_deadlocked();
  Core& core = all_[to->core];
  core.clock = std::max(core.clock, now.core->clock);
  if (core.clock > settings.cycles_max) fail_stuck(core.clock);
  if (core.running == nullptr)
    dispatch(core, *to);
  else if (core.running != to)
    hand_over(core, *to);
  now.next = kNever;
  now.limit = settings.cycles_max + 1;
  go_on(core);
}

// With the thread of a core.
void Scheduler::go_on(Core& core) {
  Thread& from = *now.thread;
  Thread& to = *core.running;
  now.core = &core;
  if (&to != &from) {
    now.thread = &to;
    ++switches_;
    switch_fiber(from, to);
    after_switch();
  }
  resume_aborted();
}

void Scheduler::after_switch() {
  if (ended_ == nullptr) return;
  Thread& thread = *ended_;
  ended_ = nullptr;
  ++now.thread->native;
  end_fiber(thread);
  --now.thread->native;
  forget(thread);
}

void Scheduler::place(Thread& thread, std::uint64_t runnable_at) {
  Core* found = nullptr;
  for (unsigned i = 0; i < cores_; ++i)
    if (CPU_ISSET(i, &thread.allowed) && (found == nullptr || all_[i].threads < found->threads)) found = &all_[i];
  thread.core = found->number;
  ++found->threads;
  wake(thread, runnable_at);
}

void Scheduler::wake(Thread& thread, std::uint64_t at) {
  Core& core = all_[thread.core];
  if (thread.state == ThreadState::ready) unqueue(thread, core);  // it waited with a limit of time
  thread.waits_in = nullptr;
  thread.runnable_at = at;
  thread.due_at = std::max(at, core.clock);
  enqueue(thread, core);
  set_key(core);
  if (&core == now.core) {
    now.limit = std::min(now.limit, thread.due_at);
  } else if (earliest_.at(core.number) < now.next) {  // C3, C2
    now.next = earliest_.at(core.number);
    now.limit = std::min(now.limit, now.next + quantum_);
  }
}

void Scheduler::reschedule() { go(); }

bool Scheduler::block(std::uint64_t until) {
  Thread& thread = *now.thread;
  Core& core = *now.core;
  release(core);
  thread.timed_out = false;
  if (until == kNever) {
    thread.state = ThreadState::blocked;
  } else {
    thread.runnable_at = thread.due_at = until;
    enqueue(thread, core);
  }
  go();
  return !thread.timed_out;
}

void Scheduler::yield() {
  Core& core = *now.core;
  Thread* const first = first_runnable(core);
  if (first != nullptr && first->runnable_at <= core.clock) hand_over(core, *first);
  go();
}

void Scheduler::migrate(unsigned number) {
  Thread& thread = *now.thread;
  Core& from = *now.core;
  if (number == from.number) return;
  release(from);
  set_key(from);
  --from.threads;
  Core& to = all_[number];
  ++to.threads;
  thread.core = number;
  thread.runnable_at = from.clock + kExchangeCycles;
  thread.due_at = thread.runnable_at;
  enqueue(thread, to);
  set_key(to);
  go();
}

void Scheduler::end() {
  Thread& thread = *now.thread;
  release(*now.core);
  --now.core->threads;
  thread.state = ThreadState::ended;
  if (thread.detached) ended_ = &thread;
  go();
  fail("thread {} ended and was run again", thread.number);
}

std::uint64_t Scheduler::cycles_of(const Thread& thread) const noexcept {
  const Core& core = all_[thread.core];
  return thread.cycles + (core.running == &thread ? core.clock - thread.began_at : 0);
}

}  // namespace loam::simulator
