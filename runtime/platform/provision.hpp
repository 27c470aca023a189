// provision: the protocol between an allocator with private pools and the transactional memory. If a pool cannot serve
// an attempt, the attempt aborts, the pool is refilled outside of it, and the transaction begins again.
//   The allocator defines the three functions; they are missing in a process with another allocator.
//   hardware attempt  the allocator aborts it with provision_code(bytes). The transactional memory sees the code, calls
//                     loam_provision(provision_bytes(code)) and begins again.
//   software attempt  malloc returns null, and loam_provision_wanted() returns the bytes. The transactional memory
//                     rolls the attempt back, calls loam_provision() and begins again. By loam_provision_watch() it has
//                     told the allocator before how to ask whether the calling thread is in such an attempt.
//   If another thread holds the pool because it steals from it (heap/pool/manager.hpp), the allocator aborts a hardware
//   attempt with kPoolHeld. The transaction then begins again, in hardware.
//   If no memory is left, loam_provision() notes this, and malloc in the next attempt fails: so the program gets the
//   error once, as an error of the transaction.
//   Source  Carle, Papagiannopoulou, Bahar, Herlihy, Moreshet: the memory manager of paper 003, section 2.1.
#pragma once

#include "runtime/platform/machine.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

extern "C" {
// in_attempt: whether the calling thread is in an attempt that can be undone. Call once, before the first attempt.
LOAM_MAY_BE_MISSING void loam_provision_watch(int (*in_attempt)());
// Bytes that the calling thread's last malloc did not get and that could be provided; 0: there are none, or no memory.
LOAM_MAY_BE_MISSING std::size_t loam_provision_wanted();
// Outside of attempts: makes sure that the calling thread's pool can serve `bytes`, as far as there is memory.
LOAM_MAY_BE_MISSING void loam_provision(std::size_t bytes);
}

namespace loam::platform {

// Codes of hardware aborts, the upper quarter of them: 0xC0 + n asks for up to 2^n bytes.
inline constexpr unsigned kProvisionCode = 0xC0, kProvisionCodes = 0x40;

// The code of an attempt that found its pool held by another thread.
inline constexpr std::uint8_t kPoolHeld = 0x4d;

constexpr bool is_provision(unsigned code) noexcept {
  return code >= kProvisionCode && code < kProvisionCode + kProvisionCodes;
}
constexpr unsigned provision_code(std::size_t bytes) noexcept {
  return kProvisionCode + (bytes <= 1 ? 0 : static_cast<unsigned>(std::bit_width(bytes - 1)));
}
constexpr std::size_t provision_bytes(unsigned code) noexcept { return std::size_t{1} << (code - kProvisionCode); }
static_assert(provision_bytes(provision_code(4096)) == 4096 && provision_bytes(provision_code(4097)) == 8192);

// Aborts the hardware attempt that the caller is in. The code is part of the instruction, so each code has its own one.
inline void abort_for_provision(std::size_t bytes) noexcept {
  const unsigned code = provision_code(bytes);
  [code]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    ((code == kProvisionCode + kIndex ? transaction_abort<kProvisionCode + kIndex>() : void()), ...);
  }(std::make_index_sequence<kProvisionCodes>{});
}

}  // namespace loam::platform
