// One thread of the simulated program.
//   Its stack, thread-local storage and pthread_t are those of a real thread, the donor, which only sleeps. One
//   operating system thread, the carrier, runs all stacks in turn, with the fs register of the donor (fiber.hpp). So
//   thread-local variables, exceptions and libc work as usual, and no two threads run at the same time.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <atomic>
#include <cstdint>

namespace loam::simulator {

struct Waiters;
struct Transaction;

enum class ThreadState : std::uint8_t { ready, running, blocked, ended };

// A function to call when a thread ends: thread-local destructors.
struct AtEnd {
  void (*function)(void*);
  void* argument;
  AtEnd* next;
};

// What an exchange of threads needs comes first.
struct alignas(64) Thread {
  void* stack_pointer = nullptr;  // of the fiber
  std::uintptr_t fs_base = 0;
  Transaction* transaction = nullptr;  // of the hardware, made at its first begin
  unsigned number = 0;                 // 0: the one that runs main()
  unsigned core = 0;
  ThreadState state = ThreadState::ready;
  bool detached = false;
  bool timed_out = false;
  unsigned native = 0;  // not 0: in code whose accesses are not simulated, which never gives up its core by itself

  // S1 a thread that is ready is in exactly one core's queue; one that waits with a limit of time is as well.
  std::uint64_t runnable_at = 0;  // when it can run
  std::uint64_t due_at = 0;       // when it takes the core from another thread
  std::uint64_t cycles = 0;       // how long it ran, without the current turn
  std::uint64_t began_at = 0;     // this turn
  Thread* queue_next = nullptr;

  // What it waits for, while it does.
  Waiters* waits_in = nullptr;
  Thread* waiter_next = nullptr;
  const char* waits_for = "";
  const void* waits_at = nullptr;

  // The fiber.
  void* donor_stack = nullptr;  // with LOAM_SIM_ENGINE=threads: where the donor goes on when its thread has ended
  std::uintptr_t stack_low = 0, stack_high = 0;

  // The donor. Words of the futexes between it and the carrier.
  pthread_t handle{};
  std::atomic<std::uint32_t> ready{0}, finish{0}, turn{0};
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  Thread* joiner = nullptr;
  AtEnd* at_end = nullptr;

  cpu_set_t allowed{};  // cores
};

inline constexpr unsigned kThreadsMax = 1024;

// What gettid() gives the thread with number 0; the others follow.
inline constexpr long kFirstThreadId = 1000;

}  // namespace loam::simulator
