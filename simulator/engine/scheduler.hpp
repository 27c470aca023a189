// The simulated cores and the threads that run on them.
//   Each core has a clock and runs one thread; others wait in its queue. The core with the smallest clock runs. On
//   lines that only it uses, it may run ahead of the next core by the quantum. Before an access that others can notice,
//   it lets all cores that are behind run first (access.hpp), so such accesses happen in the order of the clocks.
//   The schedule depends only on seed and settings: ties go to the lower core, then to the thread that waited longest.
//
//   C1 earliest_ has the time of each core's next event: its clock while it runs a thread, else when its queue has one that can
//      run; ~0 if neither.
//   C2 limit = min(next + quantum, when the current core's queue has one that is due, or it is interrupted): where the current
//      thread must ask.
//   C3 next = the least key of the other cores.
#pragma once

#include "simulator/engine/thread.hpp"
#include "simulator/model/core_set.hpp"
#include "simulator/model/earliest.hpp"
#include "simulator/model/machine.hpp"

#include <cstdint>

namespace loam::simulator {

struct alignas(64) Core {
  std::uint64_t clock = 0;
  std::uint64_t interrupt_at = kNever;
  unsigned number = 0;
  unsigned threads = 0;  // placed on it
  Thread* running = nullptr;
  Thread* last = nullptr;  // who ran before: another one pays for the exchange
  Thread* queue = nullptr;
};

// What the hooks look at.
struct Now {
  Thread* thread = nullptr;  // null: nothing is simulated
  Core* core = nullptr;
  std::uint64_t limit = kNever;  // C2
  std::uint64_t next = kNever;   // C3
};
extern Now now;

// Cycles of what the operating system does, beside the machine's own block and wake: starting a thread, another thread
// on a core, a time slice. Their sizes are those of Linux on a core of 2 GHz.
inline constexpr std::uint64_t kSpawnCycles = 20'000;
inline constexpr std::uint64_t kExchangeCycles = 1'500;
inline constexpr std::uint64_t kSliceCycles = 2'000'000;

class Scheduler {
 public:
  void start(const Machine& machine, std::uint64_t quantum, Thread& main) noexcept;

  unsigned cores() const noexcept { return cores_; }
  const Core& core(unsigned number) const noexcept { return all_[number]; }
  std::uint64_t switches() const noexcept { return switches_; }

  // Puts a new thread on the allowed core with the fewest threads.
  void place(Thread& thread, std::uint64_t runnable_at);
  // Lets every core that is behind the current one go first; returns when the caller is the one furthest behind, or
  // within the quantum.
  void reschedule();
  // The current thread sleeps until another one wakes it, or until that time. returns false if the time came first
  bool block(std::uint64_t until = kNever);
  // The current thread gives up its core to one that waits for it.
  void yield();
  // A thread that block()ed can run again from then on.
  void wake(Thread& thread, std::uint64_t at);
  // The current thread goes to another core.
  void migrate(unsigned core);
  // From now on decide() says who runs next, in place of the clocks: a thread that can run, or one that waits for a time;
  // null where there is neither. Time only goes on.
  void follow(Thread* (*decide)()) noexcept { decide_ = decide; }
  // The current thread has ended; returns never.
  [[noreturn]] void end();
  // After a switch, and where a fiber begins: cleans up behind the thread that ran before.
  void after_switch();
  // Moves the clock of the current core.
  void spend(std::uint64_t cycles) {
    now.core->clock += cycles;
    if (now.core->clock >= now.limit && now.thread->native == 0) reschedule();
  }
  std::uint64_t cycles_of(const Thread& thread) const noexcept;

 private:
  void enqueue(Thread& thread, Core& core) noexcept;
  static void unqueue(Thread& thread, Core& core) noexcept;
  static Thread* first_runnable(const Core& core) noexcept;
  static Thread* first_due(const Core& core) noexcept;
  void set_key(const Core& core) noexcept;
  void dispatch(Core& core, Thread& thread) noexcept;
  void hand_over(Core& core, Thread& thread) noexcept;
  void release(Core& core) noexcept;
  void interrupt(Core& core) noexcept;
  std::uint64_t next_interrupt(const Core& core) const noexcept;
  void go();
  void go_as_decided();
  void go_on(Core& core);

  Core all_[kCoresMax];
  Earliest earliest_;  // C1
  const Machine* machine_ = nullptr;
  unsigned cores_ = 0;
  std::uint64_t quantum_ = 0;
  std::uint64_t switches_ = 0;
  Thread* (*decide_)() = nullptr;
  Thread* ended_ = nullptr;  // whose donor is still to be let go
};

extern Scheduler scheduler;

// The threads by number; null where one ended and was joined.
extern Thread* threads[kThreadsMax];
extern unsigned thread_count;
// One that ended, and that nobody will join.
void forget(Thread& thread);

}  // namespace loam::simulator
