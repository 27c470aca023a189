#include "runtime/itm/alone.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/found.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/process.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <pthread.h>

namespace loam::itm::alone {

constinit std::atomic<const Member*> owner{nullptr};

namespace {

// Guards the variables below. No thread waits for a transaction while it holds the lock: that transaction may fork.
constinit sync::SpinLock lock;
constinit Member* members = nullptr;
constinit const Member* expelled = nullptr;  // the last owner, whose transaction may still run

bool switched_off() noexcept {
  static constinit base::Found<bool> off;
  return off.get([] {
    const char* const asked = std::getenv("LOAM_ITM_ALONE");
    const std::string_view word = asked != nullptr ? asked : "on";
    LOAM_CHECK(word == "on" || word == "off" || word.empty(), "libitm: LOAM_ITM_ALONE={}: it is on, or off", word);
    return word == "off";
  });
}

// Call with the lock.
void find_owner() noexcept {
  if (members == nullptr || members->next != nullptr || switched_off()) return;
  expelled = nullptr;                               // the one that is left has waited for it, or is it
  owner.store(members, std::memory_order_release);  // alone.C
}

// Ends the ownership. Call with the lock. returns the owner whose transaction may still run, or null
const Member* expel() noexcept {
  if (const Member* const last = owner.load(std::memory_order_relaxed)) {  // relaxed: own lock
    expelled = last;
    owner.store(nullptr, std::memory_order_relaxed);  // relaxed: alone.A, the barrier follows
  }
  return expelled;
}

void wait_for(const Member* last) noexcept {
  if (last == nullptr) return;
  platform::announce_heavy();  // alone.A
  sync::Backoff backoff;
  while (last->inside.load(std::memory_order_acquire) != 0) backoff.wait();  // alone.B
}

Member* own() noexcept { return current != nullptr ? &current->member : nullptr; }

// Waits until no other thread runs plain code. So the child's memory is as it is between transactions, or inside the
// transaction that forks. This handler is registered after those of runtime/tm, so it runs before them: they close the
// gate, which an owner may need to end its transaction.
void before_fork() noexcept {
  for (;;) {
    lock.lock();
    const Member* const last = owner.load(std::memory_order_relaxed);  // relaxed: own lock
    const bool others = last != nullptr ? last != own() : expelled != nullptr && expelled != own();
    if (!others || (last == nullptr && expelled->inside.load(std::memory_order_acquire) == 0)) return;  // alone.B
    const Member* const other = expel();
    lock.unlock();
    wait_for(other);
  }
}

void after_fork() noexcept {
  find_owner();
  lock.unlock();
}

void in_child() noexcept {
  members = own();
  if (members != nullptr) members->next = nullptr;
  expelled = nullptr;
  owner.store(nullptr, std::memory_order_relaxed);  // relaxed: the process has one thread
  mend_threads_in_child();
  Locals::forget_others(current != nullptr ? &current->locals : nullptr);
  after_fork();
}

// Installs the handlers, as runtime/tm does: when the library is loaded, or earlier, in join().
[[gnu::constructor]] void watch_forks() noexcept {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) return;  // relaxed: the loader calls it, in one thread
  tm::process::watch_forks();
  LOAM_CHECK(pthread_atfork(before_fork, after_fork, in_child) == 0, "libitm: no memory for the handlers of fork()");
}

}  // namespace

void join(Member& self) noexcept {
  watch_forks();
  const Member* last = nullptr;
  {
    const std::lock_guard guard(lock);
    self.next = members;
    members = &self;
    if (self.next == nullptr)
      find_owner();
    else
      last = expel();
  }
  wait_for(last);
}

void part(Member& self) noexcept {
  const std::lock_guard guard(lock);
  Member** link = &members;
  while (*link != &self) link = &(*link)->next;
  *link = self.next;
  if (owner.load(std::memory_order_relaxed) == &self) owner.store(nullptr, std::memory_order_relaxed);  // relaxed: own
  if (expelled == &self) expelled = nullptr;
  find_owner();
}

}  // namespace loam::itm::alone
