// Fibers: the carrier switches from one thread of the program to another by exchanging stack and thread-local storage.
//   Source  the exchange of stack pointers that coroutine libraries use, with the fs register on top.
//   Cost    some 70 ns with FSGSBASE; a system call more where the processor or the kernel lacks it.
//   With the other engine, LOAM_SIM_ENGINE=threads, each donor runs its own thread, and the donors pass a token by
//   futex. It is 20 times slower and serves to check this one.
#pragma once

#include "simulator/engine/thread.hpp"

namespace loam::simulator {

// Makes the calling code the fiber of `main`, which runs entry() on a stack at a fixed address. Never returns.
[[noreturn]] void run_main_on_own_stack(Thread& main, void (*entry)());

// Starts a donor for the thread; it sleeps when this returns. first: what the fiber runs, never returns
// returns 0 or what pthread_create did
int make_fiber(Thread& thread, const pthread_attr_t* attributes, void (*first)());

// Goes on with `to`; returns when somebody switches back to `from`.
void switch_fiber(Thread& from, Thread& to);

// Lets the donor of an ended thread end, and waits for it: its stack can be used again when this returns.
void end_fiber(Thread& thread);

}  // namespace loam::simulator
