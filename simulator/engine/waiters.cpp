#include "simulator/engine/waiters.hpp"

#include "simulator/engine/the_machine.hpp"

#include <unordered_map>

namespace loam::simulator {
namespace {

// Nodes do not move. Made at first use: this object's constructors may run after the first lock of the program.
std::unordered_map<const void*, Waiters>& all() {
  static auto* const map = new std::unordered_map<const void*, Waiters>(1024);
  return *map;
}

void take_out(Waiters& queue, Thread& thread) noexcept {
  for (Thread** at = &queue.first; *at != nullptr; at = &(*at)->waiter_next)
    if (*at == &thread) {
      *at = thread.waiter_next;
      return;
    }
}

}  // namespace

Waiters& waiters_at(const void* address) { return all()[address]; }

void forget_waiters(const void* address) noexcept { all().erase(address); }

bool wait_in(Waiters& queue, const void* address, const char* what, std::uint64_t until) {
  Thread& thread = *now.thread;
  Thread** at = &queue.first;
  while (*at != nullptr) at = &(*at)->waiter_next;
  thread.waiter_next = nullptr;
  *at = &thread;
  thread.waits_in = &queue;
  thread.waits_for = what;
  thread.waits_at = address;
  if (scheduler.block(until)) return true;
  take_out(queue, thread);
  thread.waits_in = nullptr;
  return false;
}

Thread* wake_one(Waiters& queue) {
  Thread* const thread = queue.first;
  if (thread == nullptr) return nullptr;
  queue.first = thread->waiter_next;
  scheduler.wake(*thread, now.core->clock + the_machine().wake_cycles);
  return thread;
}

unsigned wake_all(Waiters& queue, unsigned at_most) {
  unsigned woken = 0;
  while (woken < at_most && wake_one(queue) != nullptr) ++woken;
  return woken;
}

}  // namespace loam::simulator
