// alone: a thread that is the only one with transactions runs them as plain code.
//   A thread is a member from its first transaction to its end. A single member is the owner. A transaction of the
//   owner that cannot be cancelled announces itself, checks once more that its thread is still the owner, and runs the
//   code without barriers. The next thread that becomes a member ends the ownership, and waits for the announced
//   transaction.
//   Guarantees  such a transaction runs while no other does. It cannot be undone.
//   Cost        begin two loads and a store, commit a store. To become the second member: a membarrier, and that wait.
//   When not    a transaction that waits for a thread whose first transaction begins meanwhile: that thread waits for
//               the transaction, as it would for any irrevocable one. Neither continues.
//   Off         by LOAM_ITM_ALONE=off: every transaction runs through the algorithm.
// Memory orders; in brackets the failure without the pair
//   alone.A  enter() stores `inside`, then loads the owner / a new member clears the owner, announce_heavy(), then
//            loads `inside` [both transactions run]
//   alone.B  leave()'s store(release) / the load(acquire) of the thread that waits [it reads values from before the
//            owner's transaction]
//   alone.C  the store(release) of a new owner, by the last but one member when it leaves / load(acquire) in enter()
//            [the owner does not see what others have committed]
#pragma once

#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstdint>

namespace loam::itm::alone {

// The data of a thread that has begun a transaction.
struct Member {
  std::atomic<std::uint32_t> inside{0};  // 1: its transaction runs plain code
  Member* next = nullptr;
};

extern constinit std::atomic<const Member*> owner;

// Waits until no other member runs plain code.
void join(Member& self) noexcept;
void part(Member& self) noexcept;

inline void leave(Member& self) noexcept { self.inside.store(0, std::memory_order_release); }  // alone.B

// returns whether the transaction that begins may run plain code, until leave()
[[gnu::always_inline]] inline bool enter(Member& self) noexcept {
  if (owner.load(std::memory_order_relaxed) != &self) return false;  // relaxed: the look below decides
  platform::announce_light(self.inside, 1);                          // alone.A
  if (owner.load(std::memory_order_acquire) == &self) [[likely]]     // alone.A, alone.C
    return true;
  leave(self);
  return false;
}

}  // namespace loam::itm::alone
