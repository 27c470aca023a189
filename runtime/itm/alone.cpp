#include "runtime/itm/alone.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/found.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/process.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <pthread.h>

namespace loam::itm::alone {

constinit std::atomic<std::uintptr_t> owner{0};

namespace {

// Guards the list, `seen` of all members and changes of the owner. No thread waits for a transaction while it holds the
// lock: that transaction may fork.
constinit sync::SpinLock lock;
constinit Member* members = nullptr;

constexpr std::uintptr_t kEnds = 1;  // of the owner's word
constexpr std::uint64_t kPatienceMin = 64, kPatienceMax = std::uint64_t{1} << 14;
// An ownership was worth its two membarriers if it lasted so many times as long as the wait for it.
constexpr std::uint64_t kWorthwhile = 32;

bool switched_off() noexcept {
  static constinit base::Found<bool> off;
  return off.get([] {
    const char* const asked = std::getenv("LOAM_ITM_ALONE");
    const std::string_view word = asked != nullptr ? asked : "on";
    LOAM_CHECK(word == "on" || word == "off" || word.empty(), "libitm: LOAM_ITM_ALONE={}: it is on, or off", word);
    return word == "off";
  });
}

// The only member becomes the owner. Call with the lock.
void find_owner() noexcept {
  if (members == nullptr || members->next != nullptr || switched_off()) return;
  owner.store(word_of(*members), std::memory_order_release);  // alone.C
}

// Call with the lock. returns the owner whose transaction may run, or null if there is none but `self`
const Member* begin_to_end(const Member* self) noexcept {
  const std::uintptr_t word = owner.load(std::memory_order_relaxed);  // relaxed: own lock
  if (word == 0 || (self != nullptr && word == word_of(*self))) return nullptr;
  owner.store(word | kEnds, std::memory_order_relaxed);  // relaxed: alone.A, the barrier follows
  return reinterpret_cast<const Member*>(word & ~kEnds);
}

// Waits for its transaction, and clears the owner.
void end(const Member& last) noexcept {
  platform::announce_heavy();  // alone.A
  sync::Backoff backoff;
  while ((last.state.load(std::memory_order_acquire) & Member::kPlain) != 0) backoff.wait();  // alone.B
  const std::lock_guard guard(lock);
  if (owner.load(std::memory_order_relaxed) == (word_of(last) | kEnds))  // relaxed: own lock
    owner.store(0, std::memory_order_release);                           // alone.C
}

// Whether no other member has begun a transaction since a member asked last. Call with the lock.
bool is_quiet(const Member& self) noexcept {
  bool quiet = true;
  for (Member* member = members; member != nullptr; member = member->next) {
    if (member == &self) continue;
    const std::uint64_t state = member->state.load(std::memory_order_relaxed);  // relaxed: a guess
    quiet = quiet && state == member->seen && (state & Member::kWhat) == 0;
    member->seen = state;
  }
  return quiet;
}

bool any_other_runs(const Member& self) noexcept {
  for (const Member* member = members; member != nullptr; member = member->next)
    if (member != &self && (member->state.load(std::memory_order_acquire) & Member::kWhat) != 0)  // alone.B, alone.D
      return true;
  return false;
}

// Call with the lock. returns whether it has become the owner
bool take(const Member& self) noexcept {
  if (owner.load(std::memory_order_relaxed) != 0 || !is_quiet(self)) return false;  // relaxed: own lock
  owner.store(word_of(self), std::memory_order_relaxed);  // relaxed: alone.D, the barrier follows
  platform::announce_heavy();                             // alone.D
  if (!any_other_runs(self)) return true;
  owner.store(0, std::memory_order_release);  // alone.C
  return false;
}

void ask_later(Member& self, std::uint64_t patience) noexcept {
  self.patience = std::clamp(patience, kPatienceMin, kPatienceMax);
  // relaxed: own
  self.asks_at = self.state.load(std::memory_order_relaxed) + self.patience * Member::kOne;
}

Member* own() noexcept { return current != nullptr ? &current->member : nullptr; }

// Waits until no other thread runs plain code. So the child's memory is as it is between transactions, or inside the
// transaction that forks. This handler is registered after those of runtime/tm, so it runs before them: they close the
// gate, which an owner may need to end its transaction.
void before_fork() noexcept {
  for (;;) {
    lock.lock();
    const std::uintptr_t word = owner.load(std::memory_order_relaxed);  // relaxed: own lock
    const Member* const self = own();
    if (word == 0 || (self != nullptr && (word & ~kEnds) == word_of(*self))) return;
    const Member* const other = begin_to_end(self);
    lock.unlock();
    end(*other);
  }
}

void after_fork() noexcept {
  find_owner();
  lock.unlock();
}

void in_child() noexcept {
  members = own();
  if (members != nullptr) members->next = nullptr;
  owner.store(0, std::memory_order_relaxed);  // relaxed: the process has one thread
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
  self.state.store(0, std::memory_order_relaxed);  // relaxed: the lock publishes it
  self.seen = self.plain = 0;
  ask_later(self, kPatienceMin);
  if (switched_off()) self.asks_at = ~std::uint64_t{0};
  const std::lock_guard guard(lock);
  self.next = members;
  members = &self;
  find_owner();
}

void part(Member& self) noexcept {
  const std::lock_guard guard(lock);
  Member** link = &members;
  while (*link != &self) link = &(*link)->next;
  *link = self.next;
  if ((owner.load(std::memory_order_relaxed) & ~kEnds) == word_of(self))  // relaxed: own lock
    owner.store(0, std::memory_order_release);                            // alone.C
  find_owner();
}

void end_ownership(const Member& self) noexcept {
  do {
    const Member* last = nullptr;
    {
      const std::lock_guard guard(lock);
      last = begin_to_end(&self);
    }
    if (last == nullptr) return;
    end(*last);
  } while (owner.load(std::memory_order_acquire) != 0);  // alone.C, alone.D
}

bool ask(Member& self) noexcept {
  if (owner.load(std::memory_order_relaxed) == word_of(self)) return true;  // relaxed: enter() looks again
  if (self.plain != 0) {                                                    // it was the owner
    const bool worthwhile = self.plain >= kWorthwhile * self.patience;
    self.plain = 0;
    ask_later(self, worthwhile ? self.patience / 2 : self.patience * 2);
    return false;
  }
  const std::lock_guard guard(lock);
  if (!take(self)) {
    ask_later(self, self.patience * 2);
    return false;
  }
  self.asks_at = 0;  // whether it is still the owner, the first time that it is not
  return true;
}

}  // namespace loam::itm::alone
