#include "runtime/tm/serial.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/runtime.hpp"
#include "runtime/tm/waiting.hpp"

namespace loam::tm::serial {
namespace {

constinit std::atomic<std::uint32_t> token{0};  // 1: taken
constinit std::atomic<std::uint64_t> past{0};   // serial transactions
constexpr unsigned kEverybody = 1U << 30;

}  // namespace

bool closed() noexcept { return (shared.slow_begin.load(std::memory_order_seq_cst) & kGateClosed) != 0; }  // serial.A

// relaxed: inside an announcement no serial transaction runs, and serial.C orders it before.
std::uint64_t generation() noexcept { return past.load(std::memory_order_relaxed); }

void acquire(Descriptor& d) noexcept {
  // serial.B: acquire pairs with the release in release(): serial transactions see one another.
  while (token.exchange(1, std::memory_order_acquire) != 0) platform::futex_wait(token, 1);
  shared.slow_begin.fetch_or(kGateClosed, std::memory_order_seq_cst);
  platform::announce_heavy();  // serial.A
  LOAM_POINT("tm.gate_closed");
  domain.wait_for_idle(d.participant);
  d.mode = Mode::serial;
}

void release(Descriptor& d) noexcept {
  d.mode = Mode::idle;
  past.fetch_add(1, std::memory_order_relaxed);
  // serial.C: release pairs with the load in enter() and closed(): who finds the gate open sees what was done alone.
  shared.slow_begin.fetch_and(~kGateClosed, std::memory_order_release);
  token.store(0, std::memory_order_release);  // serial.B
  platform::futex_wake(token, kEverybody);
  waiting::notify();
}

void wait_until_open(Descriptor& d) noexcept {
  do {
    domain.leave(d.participant);
    while (closed()) platform::futex_wait(token, 1, 1'000'000);
    domain.enter(d.participant);
  } while (closed());
}

}  // namespace loam::tm::serial
