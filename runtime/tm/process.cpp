#include "runtime/tm/process.hpp"

#include "runtime/base/check.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <cstdlib>

#include <pthread.h>

namespace loam::tm::process {
namespace {

// An irrevocable transaction has closed the gate already.
bool runs_alone() noexcept { return Descriptor::current_or_detached().mode == Mode::serial; }

// Whether the fork under way has closed the gate. Guarded by the lock of setup.
constinit bool gate_is_closed = false;

void before_fork() noexcept {
  const Descriptor& d = Descriptor::current_or_detached();
  LOAM_CHECK(d.mode == Mode::idle || d.mode == Mode::detached || d.mode == Mode::serial,
             "tm: fork() inside a transaction, whose locks the child would keep; fork outside, or in "
             "atomically(irrevocable, ...)");
  lock_setup();
  // If no thread has attached, there is no attempt to wait for, and no thread attaches while setup is locked.
  const bool anybody = shared.algorithm.load(std::memory_order_relaxed) != nullptr;  // relaxed: stored under the lock
  const bool close = anybody && !runs_alone();
  if (close) {
    unlock_setup();
    serial::acquire_for_fork(d);
    lock_setup();
  }
  gate_is_closed = close;
  domain.lock_for_fork();
}

void release_all() noexcept {
  const bool open = gate_is_closed;
  domain.unlock_after_fork();
  unlock_setup();
  if (open) serial::release_after_fork();
}

void in_child() noexcept {
  Descriptor::forget_other_threads();
  shared.sleepers.store(0, std::memory_order_relaxed);  // relaxed: the process has one thread
  release_all();
}

void at_exit() noexcept {
  const Mode mode = Descriptor::current_or_detached().mode;
  LOAM_CHECK(mode == Mode::idle || mode == Mode::detached || mode == Mode::serial,
             "tm: exit() inside a transaction, which would be lost; exit outside, or in atomically(irrevocable, ...)");
}

// Runs when the program is loaded. If the handlers were installed later, a fork that began before that could not wait
// for a thread that attaches during it.
[[gnu::constructor]] void prepare() noexcept {
  watch_forks();
  prepare_setup();
}

}  // namespace

void watch_forks() noexcept {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) return;  // relaxed: the loader calls it first, in one thread
  LOAM_CHECK(pthread_atfork(before_fork, release_all, in_child) == 0, "tm: no memory for the handlers of fork()");
}

void watch() noexcept {
  watch_forks();  // the constructor of a static object may run a transaction before prepare() runs
  LOAM_CHECK(std::atexit(at_exit) == 0, "tm: no memory for the handler of exit()");
}

}  // namespace loam::tm::process
