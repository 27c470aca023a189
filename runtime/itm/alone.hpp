// alone: a thread that is the only one in transactions runs them as plain code.
//   A thread is a member from its first transaction to its end. One member at a time may be the owner: the only one, or
//   one that has seen for a while that no other member begins transactions. A transaction of the owner that cannot be
//   cancelled announces itself, checks once more that its thread is still the owner, and runs the code without barriers.
//   A transaction of any other kind announces itself, too, and then checks that no other member is the owner. If one is,
//   it ends the ownership, and waits until the owner's transaction has ended.
//   Guarantees  plain code runs while no other transaction does. It cannot be undone.
//   Cost        plain code: two loads and a store to begin, a store to commit; other transactions the same. To end an
//               ownership: a membarrier, and that wait. To become the owner: a look at all members, and a membarrier.
//               Who lost the ownership soon waits twice as long before it asks again.
//   When not    a transaction that waits for a thread that begins a transaction meanwhile: that thread waits for the
//               transaction, as it would for any irrevocable one. Neither continues.
//   Off         by LOAM_ITM_ALONE=off: every transaction runs through the algorithm.
// Memory orders; in brackets the failure without the pair
//   alone.A  enter() stores that plain code runs, then loads the owner / who ends the ownership stores the owner,
//            announce_heavy(), then loads what runs [both transactions run]
//   alone.B  leave()'s store(release) / the load(acquire) of the thread that waits, or of a new owner [it reads values
//            from before the transaction]
//   alone.C  the store(release) that clears the owner, or names the member that is left / load(acquire) in enter() and
//            announce() [it does not see what the owner, or the others, have written]
//   alone.D  announce() stores that a transaction runs, then loads the owner / a new owner stores itself,
//            announce_heavy(), then loads what runs [both transactions run]
#pragma once

#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstdint>

namespace loam::itm::alone {

// The data of a thread that has begun a transaction.
struct Member {
  // What runs, and four times the number of transactions through the algorithm so far.
  static constexpr std::uint64_t kPlain = 1, kThroughAlgorithm = 2, kWhat = 3, kOne = 4;

  std::atomic<std::uint64_t> state{0};
  Member* next = nullptr;
  std::uint64_t seen = 0;  // its state when a member asked last; guarded by the lock
  // Its own alone:
  std::uint64_t asks_at = 0;   // the state from which on it asks whether it is alone
  std::uint64_t patience = 0;  // transactions between two questions
  std::uint64_t plain = 0;     // transactions as plain code since it became the owner
};

// The owner; with the lowest bit set while another member ends the ownership.
extern constinit std::atomic<std::uintptr_t> owner;

inline std::uintptr_t word_of(const Member& member) noexcept { return reinterpret_cast<std::uintptr_t>(&member); }

void join(Member& self) noexcept;
void part(Member& self) noexcept;

// Ends the ownership of another member. The transaction that begins is announced.
void end_ownership(const Member& self) noexcept;
// returns whether the thread has become the owner
bool ask(Member& self) noexcept;

// A transaction has ended.
inline void leave(Member& self) noexcept {
  const std::uint64_t state = self.state.load(std::memory_order_relaxed);  // relaxed: own
  self.state.store(state & ~Member::kWhat, std::memory_order_release);     // alone.B
}

// returns whether the transaction that begins may run plain code, until leave()
[[gnu::always_inline]] inline bool enter(Member& self) noexcept {
  if (owner.load(std::memory_order_relaxed) != word_of(self)) return false;  // relaxed: the look below decides
  const std::uint64_t state = self.state.load(std::memory_order_relaxed);    // relaxed: own
  platform::announce_light(self.state, state | Member::kPlain);              // alone.A
  if (owner.load(std::memory_order_acquire) == word_of(self)) [[likely]] {   // alone.A, alone.C
    ++self.plain;
    return true;
  }
  leave(self);
  return false;
}

// A transaction begins that runs through the algorithm, or in hardware, until leave().
[[gnu::always_inline]] inline void announce(Member& self) noexcept {
  const std::uint64_t state = self.state.load(std::memory_order_relaxed) + Member::kOne;  // relaxed: own
  platform::announce_light(self.state, state | Member::kThroughAlgorithm);                // alone.D
  const std::uintptr_t other = owner.load(std::memory_order_acquire);                     // alone.C, alone.D
  if (other != 0 && other != word_of(self)) [[unlikely]]
    end_ownership(self);
}

// The same, if other transactions of the thread have ended since the transaction was announced.
inline void announce_again(Member& self) noexcept {
  if ((self.state.load(std::memory_order_relaxed) & Member::kThroughAlgorithm) == 0) announce(self);  // relaxed: own
}

// Whether the member should ask().
[[gnu::always_inline]] inline bool is_time_to_ask(const Member& self) noexcept {
  return self.state.load(std::memory_order_relaxed) >= self.asks_at;  // relaxed: own
}

}  // namespace loam::itm::alone
