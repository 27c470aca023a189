// sharing: which cache lines the threads of a program share, and whose blocks lie in them.
//   How      sharing/monitor.hpp: the software clock samples, debug registers watch. No counter is needed.
//   Source   LOAM_SHARING names the file; a process that starts a second thread appends its number to it.
//            LOAM_SHARING_PERIOD_US, LOAM_SHARING_WINDOW_US: the pace (sharing/monitor.hpp), for tests.
//   Format   sharing/log.hpp; lines are those of sharing/monitor.hpp.  docs/internals/sharing.md
//   Guarantees  a process of one thread runs as it would without, but for the table of its blocks.
//   Cost     a store into the shadow for each block, a look at the thread's latest ways to allocate; docs/internals/sharing.md
//   When not threads that are made without pthread_create.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "forward.hpp"
#include "operators.hpp"
#include "sharing/monitor.hpp"
#include "sharing/ways.hpp"

namespace loam::interposer {
namespace {

using sharing::Blocks, sharing::Log, sharing::Monitor, sharing::Pace, sharing::Sites, sharing::Ways;

constinit Blocks blocks;
constinit Sites sites;
constinit Log log;
std::atomic<std::uint64_t> created{0};
std::atomic<bool> watching{false}, monitor_made{false};
Monitor* monitor;
// Held by the monitor for as long as it lives, and robust: a filter of system calls (seccomp) that kills the thread which makes
// a call, and not its process, leaves it without an owner.
pthread_mutex_t alive;
alignas(Monitor) char monitor_place[sizeof(Monitor)];
char path[4000];
Pace pace;

// What a thread keeps of itself.
struct Own {
  // Who asks for a block: a function of this library's may stand between the two.
  std::uintptr_t entered_from = 0;
  // The thread's number, and a place on its stack from which heights are measured: other threads take the same ways.
  std::uintptr_t number = 0, lowest = 0;
  Ways ways;
};
constinit thread_local Own own;

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
Create create;

void* watch(void*) noexcept {
  const Inside unseen;
  pthread_mutex_lock(&alive);
  prctl(PR_SET_NAME, "loam-sharing");
  monitor->run();
}

// A forked child has none of the threads; its first one starts a monitor of its own.
void in_child() noexcept {
  Lock::forget();
  if (monitor_made.load(std::memory_order_relaxed)) monitor->forget();
  log.forget();
  own = {};  // another number
  // relaxed, both: no other thread lives in the child.
  watching.store(false, std::memory_order_relaxed);
  monitor_made.store(false, std::memory_order_relaxed);
}

[[gnu::noinline]] void start() noexcept {
  const Inside unseen;
  if (!log.open(path)) return;
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&alive, &robust);
  pthread_mutexattr_destroy(&robust);
  monitor = new (monitor_place) Monitor(pace, blocks, sites, log, created);
  monitor_made.store(true, std::memory_order_release);  // sharing.A
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  // Signals are the program's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  create(&thread, &attributes, watch, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

void take_us(const char* name, std::uint64_t& into_ns) noexcept {
  const char* wanted = std::getenv(name);
  if (wanted != nullptr && std::strtoull(wanted, nullptr, 10) > 0) into_ns = std::strtoull(wanted, nullptr, 10) * 1000;
}

// The monitor never ends by itself.
[[gnu::destructor]] void finish() {
  // acquire: pairs with the release in start() (sharing.A): the mutex is there.
  log.ended(!monitor_made.load(std::memory_order_acquire) || pthread_mutex_trylock(&alive) != EOWNERDEAD);
}

}  // namespace

void begin() noexcept {
  const char* wanted = std::getenv("LOAM_SHARING");
  if (wanted == nullptr || std::strlen(wanted) >= sizeof path || !sites.map()) return;
  std::strcpy(path, wanted);
  take_us("LOAM_SHARING_PERIOD_US", pace.period_ns);
  take_us("LOAM_SHARING_WINDOW_US", pace.window_ns);
  pthread_atfork(nullptr, nullptr, in_child);
}

namespace {

[[gnu::noinline]] void* note(void* block, std::size_t bytes, std::uintptr_t caller, std::uintptr_t frame) noexcept {
  if (path[0] == '\0') return block;
  const Inside unseen;
  if (own.number == 0) {
    own.number = static_cast<std::uintptr_t>(gettid());
    own.lowest = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }
  if (is_own(caller)) caller = own.entered_from;
  if (own.ways.find(caller, frame) == nullptr)
    own.ways.keep(caller, frame, Blocks::maker(own.number, sites.number(caller, frame - own.lowest)));
  blocks.add(block, bytes, *own.ways.find(caller, frame));
  return block;
}

}  // namespace

[[gnu::always_inline]] inline bool passes(std::size_t) noexcept { return false; }

[[gnu::always_inline]] inline void* allocated(void* block, std::size_t bytes, bool) noexcept {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)),
             frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const Blocks::Maker* maker = own.ways.find(caller, frame);
  if (maker != nullptr && blocks.add_short(block, bytes, *maker)) [[likely]]
    return block;
  return note(block, bytes, caller, frame);
}

[[gnu::always_inline]] inline void entered(void* caller) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(caller);
  if (!is_own(from)) own.entered_from = from;
}

[[gnu::always_inline]] inline bool gone_quickly(void* block) noexcept { return blocks.remove_short(block); }

void freeing(void* block) noexcept {
  if (block != nullptr && !is_early(block)) blocks.remove(block);
}

}  // namespace loam::interposer

LOAM_EXPORT int pthread_create(pthread_t* into, const pthread_attr_t* attributes, void* (*function)(void*),
                               void* argument) {
  li::first::started();
  if (li::create == nullptr) {
    const li::Inside unseen;
    li::look_up(li::create, "pthread_create");
  }
  const int status = li::create(into, attributes, function, argument);
  // relaxed: the monitor looks for threads when it sees that the count has changed.
  if (status == 0) li::created.fetch_add(1, std::memory_order_relaxed);
  // The first thread is there: now there is something to watch.
  if (status == 0 && li::path[0] != '\0' && !li::watching.exchange(true, std::memory_order_relaxed)) li::start();
  return status;
}

// How many watches there were ('w'), and how many of them caught a thread ('c'): for programs that run until then.
LOAM_EXPORT unsigned long loam_sharing_count(char what) {
  // acquire: pairs with the release in start() (sharing.A): the monitor is made.
  if (!li::monitor_made.load(std::memory_order_acquire)) return 0;
  return what == 'c' ? li::monitor->catches() : li::monitor->watches();
}
