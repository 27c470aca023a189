// ttas: one word, taken by an exchange once it was seen free. A control: each thread executes its own operation.
//   Source      Segall, Rudolph: "Dynamic decentralized cache schemes for MIMD parallel processors", ISCA 1984.
//   Guarantees  D1 to D3; not fair: who holds the word's line gets it again.   Cost  an exchange and a store.
//   When not    many waiting threads: each release makes all of them try. It never sleeps: after its looks it yields.
//   Orders      ttas.A  the word: acquire when taken, release when given: what the holders before did.
#pragma once

#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Ttas {
 public:
  static constexpr Description kDescription{.name = "ttas",
                                            .summary = "a lock of one word, test-and-test-and-set",
                                            .paper = "",
                                            .guarantees = "mutual exclusion",
                                            .means = Means::lock};
  static constexpr bool kSleeps = false;

  explicit Ttas(const Settings& settings = {}) noexcept : waiting_(settings.waiting) {}
  Ttas(const Ttas&) = delete;
  Ttas& operator=(const Ttas&) = delete;

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    Executing::refuse(this);
    lock();
    const Turn turn(*this);
    return f();
  }

 private:
  struct Turn {
    explicit Turn(Ttas& lock) noexcept : lock_(lock), executing_(&lock) {}
    ~Turn() { lock_.held_.store(false, std::memory_order_release); }  // ttas.A
    Ttas& lock_;
    const Executing executing_;
  };

  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire))  // ttas.A
      // relaxed: decides only when to try again.
      for (std::uint32_t look = 0; held_.load(std::memory_order_relaxed); ++look)
        look < waiting_.looks() ? waiting_.pause() : platform::yield();
  }

  alignas(platform::kApartBytes) std::atomic<bool> held_{false};
  alignas(platform::kApartBytes) const W waiting_;
};

}  // namespace loam::delegation
