// ticket: a number is drawn, and called. A control: each thread executes its own operation.
//   Source      Mellor-Crummey, Scott: "Algorithms for scalable synchronization on shared-memory multiprocessors", TOCS
//               1991.
//   Guarantees  first come, first served; D1 to D3.   Cost  a fetch-add and a store; all that wait read one line.
//   When not    more threads than processors: the next in turn may not run, and all wait for it. It never sleeps: after
//               its looks it yields.
//   Orders      ticket.A  serving: release when called, acquire by who waits: what the holders before did.
#pragma once

#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Ticket {
 public:
  static constexpr Description kDescription{.name = "ticket",
                                            .summary = "a lock that calls numbers",
                                            .paper = "",
                                            .guarantees = "mutual exclusion; first come, first served",
                                            .means = Means::lock};
  static constexpr bool kSleeps = false;

  explicit Ticket(const Settings& settings = {}) noexcept : waiting_(settings.waiting) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    Executing::refuse(this);
    const Turn turn(*this, lock());
    return f();
  }

 private:
  struct Turn {
    Turn(Ticket& lock, std::uint32_t number) noexcept : lock_(lock), number_(number), executing_(&lock) {}
    ~Turn() { lock_.serving_.store(number_ + 1, std::memory_order_release); }  // ticket.A
    Ticket& lock_;
    const std::uint32_t number_;
    const Executing executing_;
  };

  std::uint32_t lock() noexcept {
    // relaxed: a number carries no data; order comes from serving_ (ticket.A).
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t look = 0; serving_.load(std::memory_order_acquire) != mine; ++look)  // ticket.A
      look < waiting_.looks() ? waiting_.pause() : platform::yield();
    return mine;
  }

  alignas(platform::kApartBytes) std::atomic<std::uint32_t> next_{0};
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> serving_{0};
  alignas(platform::kApartBytes) const W waiting_;
};

}  // namespace loam::delegation
