// Waiting: how a thread waits until a word of a cell changes. The policy is a template parameter of every scheme.
//   SpinThenSleep  checks the word, with pauses between two checks. After a while it sleeps in the kernel, and the
//                  thread that changes the word wakes it. Needed if there are more threads than processors.
//   Spin           checks without an end: the policy of the published implementations.
//   Why it matters  If a client checks seldom, the executor keeps its cache lines for longer: its turns become longer,
//   and each operation cheaper. This alone can reverse the ranking of schemes. So every scheme is measured with its
//   best policy, and the number of pauses is reported with their length.
// Orders
//   waiting.A  tell(): release; wait(): acquire.  Without it the client could read the result before it is written.
//   waiting.B  the sleeper sets its mark, then checks the word once more; the other thread changes the word, then
//              checks the mark. At least one must see the other (StoreLoad): announce_light() and announce_heavy().
//              Only a thread that goes to sleep pays for it.
#pragma once

#include "runtime/delegation/cell.hpp"
#include "runtime/delegation/types.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>

namespace loam::delegation {

// A pause of the processor in ns, measured at the first call, some 50 us; 13 on some processors, over 40 on others.
double pause_ns() noexcept;

// The default number of pauses between two checks, on a processor whose pause takes this long.
//   If checks are closer, they take the cache line from the thread that is about to write it. If they are further
//   apart, the thread finds the answer late. A check every 13 ns, about an eighth of a round trip, is the best of those
//   measured: with 1, 2, 4, 8, 16 pauses of 13 ns a round trip takes 114, 116, 138, 195 and 284 ns.
std::uint32_t pauses_for(double pause_ns) noexcept;
// The pauses of the settings, or the default for this processor.
std::uint32_t pauses_of(const WaitingSettings& settings) noexcept;

// One number for "after this many looks", from one for time.
inline std::uint32_t looks_in(std::uint32_t ns, std::uint32_t pauses) noexcept {
  constexpr double kLookNs = 2;  // a load that hits
  return static_cast<std::uint32_t>(static_cast<double>(ns) / (pauses * pause_ns() + kLookNs)) + 1;
}

// Sleeps on `word` while it is `waiting`. After it returns, the caller checks again.
void sleep_on(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleeping, std::uint32_t waiting) noexcept;
void wake(const std::atomic<std::uint32_t>& word) noexcept;

class SpinThenSleep {
 public:
  static constexpr bool kSleeps = true;

  explicit SpinThenSleep(const WaitingSettings& settings) noexcept
      : pauses_(pauses_of(settings)),
        first_pauses_(static_cast<std::uint32_t>(settings.first_delay_ns / pause_ns())),
        looks_(settings.spin_ns == WaitingSettings::kNeverSleep ? ~0u : looks_in(settings.spin_ns, pauses_)) {}

  // Returns the state once it is no longer `waiting`.
  std::uint32_t wait(Cell& cell, std::uint32_t waiting) const noexcept {
    for (std::uint32_t i = 0; i < first_pauses_; ++i) platform::pause();
    for (std::uint32_t look = 0; look < looks_ || looks_ == ~0u; ++look) {
      const std::uint32_t state = cell.state.load(std::memory_order_acquire);  // waiting.A
      if (state != waiting) return state;
      pause();
    }
    for (;;) {
      sleep_on(cell.state, cell.sleeping, waiting);
      const std::uint32_t state = cell.state.load(std::memory_order_acquire);  // waiting.A
      if (state != waiting) return state;
    }
  }

  void tell(Cell& cell, std::uint32_t state) const noexcept {
    platform::announce_light(cell.state, state);  // waiting.A, waiting.B
    // relaxed: ordered by waiting.B. Another client may use the cell by now: it is then woken for nothing.
    if (cell.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake(cell.state);
  }

  // The pause between two checks of a thread that watches several words.
  void pause() const noexcept {
    for (std::uint32_t i = 0; i < pauses_; ++i) platform::pause();
  }
  std::uint32_t looks() const noexcept { return looks_; }

 private:
  std::uint32_t pauses_, first_pauses_, looks_;
};

class Spin {
 public:
  static constexpr bool kSleeps = false;

  explicit Spin(const WaitingSettings& settings) noexcept
      : pauses_(pauses_of(settings)), first_pauses_(static_cast<std::uint32_t>(settings.first_delay_ns / pause_ns())) {}

  std::uint32_t wait(Cell& cell, std::uint32_t waiting) const noexcept {
    for (std::uint32_t i = 0; i < first_pauses_; ++i) platform::pause();
    for (;;) {
      const std::uint32_t state = cell.state.load(std::memory_order_acquire);  // waiting.A
      if (state != waiting) return state;
      pause();
    }
  }

  void tell(Cell& cell, std::uint32_t state) const noexcept {
    cell.state.store(state, std::memory_order_release);  // waiting.A
  }

  void pause() const noexcept {
    for (std::uint32_t i = 0; i < pauses_; ++i) platform::pause();
  }
  std::uint32_t looks() const noexcept { return ~0u; }

 private:
  std::uint32_t pauses_, first_pauses_;
};

template <class W>
concept Waiting =
    std::constructible_from<W, const WaitingSettings&> && requires(const W waiting, Cell& cell, std::uint32_t state) {
      { waiting.wait(cell, state) } -> std::same_as<std::uint32_t>;
      waiting.tell(cell, state);
      waiting.pause();
      { waiting.looks() } -> std::same_as<std::uint32_t>;
      { W::kSleeps } -> std::convertible_to<bool>;
    };
static_assert(Waiting<SpinThenSleep> && Waiting<Spin>);

}  // namespace loam::delegation
