#include "runtime/tm/attempts/serial.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/logs/write_set.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm::serial {
namespace {

constinit std::atomic<std::uint32_t> token{0};             // 1: taken
constinit std::atomic<const Descriptor*> holder{nullptr};  // whose the token is; nobody's during a fork
constinit std::atomic<std::uint64_t> past{0};              // transactions that ran in place, and changes
constinit bool can_be_undone = false;                      // guarded by the token
constexpr unsigned kEverybody = 1U << 30;

// By the thread that has the token.
void shut_gate() noexcept {
  shared.slow_begin.fetch_or(kGateClosed, std::memory_order_seq_cst);
  platform::announce_heavy();  // serial.A
  LOAM_POINT("tm.gate_closed");
}

void close_gate(const reclaim::Participant& self) noexcept {
  // serial.B: acquire pairs with the release in open_gate(): serial transactions see one another.
  while (token.exchange(1, std::memory_order_acquire) != 0) platform::futex_wait(token, 1);
  shut_gate();
  domain.wait_for_idle(self);
}

void open_gate() noexcept {
  // serial.C: release pairs with the load in enter() and closed(): who finds the gate open sees what was done alone.
  shared.slow_begin.fetch_and(~kGateClosed, std::memory_order_release);
  token.store(0, std::memory_order_release);  // serial.B
  platform::futex_wake(token, kEverybody);
}

}  // namespace

bool closed() noexcept { return (shared.slow_begin.load(std::memory_order_seq_cst) & kGateClosed) != 0; }  // serial.A

// relaxed: only the thread itself makes it equal, or different
bool holds(const Descriptor& d) noexcept { return holder.load(std::memory_order_relaxed) == &d; }

// relaxed: inside an announcement no serial transaction runs, and serial.C orders it before.
std::uint64_t generation() noexcept { return past.load(std::memory_order_relaxed); }

void acquire(Descriptor& d) noexcept {
  close_gate(d.participant);
  holder.store(&d, std::memory_order_relaxed);  // relaxed: see holds()
}

void release(Descriptor&) noexcept {
  holder.store(nullptr, std::memory_order_relaxed);  // relaxed: see holds()
  open_gate();
  waiting::notify();
}

void acquire_for_fork(const Descriptor& current) noexcept { close_gate(current.participant); }
void release_after_fork() noexcept { open_gate(); }

void acquire_for_change() noexcept { close_gate(Descriptor::current_or_detached().participant); }
bool acquire_for_change_within(std::uint64_t limit_ns) noexcept {
  const reclaim::Participant& self = Descriptor::current_or_detached().participant;
  if (token.exchange(1, std::memory_order_acquire) != 0) return false;  // serial.B
  shut_gate();
  if (domain.is_idle_within(self, limit_ns)) return true;
  open_gate();
  return false;
}
void release_after_change() noexcept {
  past.fetch_add(1, std::memory_order_relaxed);  // relaxed: serial.C publishes it
  open_gate();
  waiting::notify();
}

void wait_until_open(Descriptor& d) noexcept {
  LOAM_POINT("tm.at_the_gate");
  do {
    domain.leave(d.participant);
    while (closed()) platform::futex_wait(token, 1, 1'000'000);
    LOAM_POINT("tm.gate_open");
    domain.enter(d.participant);
    LOAM_POINT("tm.announced");
  } while (closed());
}

void begin_in_place(Descriptor& d, bool revocable) noexcept {
  can_be_undone = revocable;
  d.mode = Mode::serial;
}

bool revocable() noexcept { return can_be_undone; }

void irrevocable(Descriptor& d) noexcept {
  can_be_undone = false;
  d.write_end = d.writes.begin();
}

void note(Descriptor& d, Word* address, Word mask) noexcept {
  fill(*d.write_end, nullptr, address, load_whole(address), mask, d.no_record);
  added(d);
}

void undo_to(Descriptor& d, WriteEntry* mark) noexcept {
  while (d.write_end != mark) {
    const WriteEntry& entry = *--d.write_end;
    store_masked(address_of(entry), entry.value, entry.mask);
  }
}

void end_in_place(Descriptor& d) noexcept {
  can_be_undone = false;
  d.write_end = d.writes.begin();
  past.fetch_add(1, std::memory_order_relaxed);  // relaxed: serial.C publishes it
}

}  // namespace loam::tm::serial
