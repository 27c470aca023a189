// serial: a transaction that runs alone. It cannot abort, so it may do what cannot be undone.
//   A token admits one; the gate keeps new attempts out, and the one with the token waits until the others have ended.
//   serial.A = lifecycle.A   gate set, announce_heavy(), announcements read / announcement, then the gate read
#pragma once

#include "runtime/tm/descriptor.hpp"

namespace loam::tm::serial {

// How many serial transactions there have been: they leave no other trace.
std::uint64_t generation() noexcept;

// Bits of Shared::slow_begin: why a begin has more to do.
inline constexpr std::uint32_t kGateClosed = 1, kPublishes = 2;

// Whether new attempts are kept out.
bool closed() noexcept;

// Waits for the token, then for all other attempts. Call outside of attempts. Waits for ever if an attempt never ends.
void acquire(Descriptor& d) noexcept;
void release(Descriptor& d) noexcept;

// Leaves the announcement until the gate is open, and announces again.
void wait_until_open(Descriptor& d) noexcept;

}  // namespace loam::tm::serial
