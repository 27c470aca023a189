// policy: what a hardware attempt's abort means, and what to do next.
//   Source     the counts by abort code that docs/hardware-transactions.md gives; Intel's manual, volume 1, chapter 16.
//   After a conflict the transaction tries again at once, because the conflict may be over. If it needs more memory
//   than the hardware can track, no further try will help. A status of zero means an interrupt, a page fault, a system
//   call, or an instruction that is not allowed in a transaction. In all these cases the transaction falls back once,
//   because a run outside of the hardware touches the page or binds the symbol.
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/platform/provision.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/abort_cause.hpp"

namespace loam::tm::hardware {

// Hardware attempts of one transaction before it falls back. The eighth attempt hardly ever aborts. With only one or
// two, transactions would fall back that a third attempt would commit.
inline constexpr unsigned kTriesMax = 8;

// The code with which an attempt aborts itself if another transaction holds the lock or writes back.
inline constexpr std::uint8_t kFallbackTaken = 0x4c;

// Codes below those of platform/provision.hpp: 0x80 + n asks for stock n to be filled (lent.hpp).
inline constexpr unsigned kRestockCode = 0x80;
static_assert(kRestockCode + platform::kStocks <= platform::kProvisionCode && kFallbackTaken < kRestockCode &&
              platform::kPoolHeld < kRestockCode && platform::kPoolHeld != kFallbackTaken);
constexpr bool is_restock(unsigned code) noexcept {
  return code >= kRestockCode && code < kRestockCode + platform::kStocks;
}

// provide: let the allocator provide memory outside of the attempt (provide() in lent.hpp), then try again.
enum class Next { try_again, wait_and_try_again, provide, fall_back };

constexpr AbortCause cause_of(unsigned status) noexcept {
  using namespace platform;
  if ((status & kAbortExplicit) != 0) {
    const unsigned code = explicit_code(status);
    if (is_provision(code) || is_restock(code)) return AbortCause::reprovision;
    return code == kFallbackTaken || code == platform::kPoolHeld ? AbortCause::fallback : AbortCause::explicit_;
  }
  if ((status & kAbortCapacity) != 0) return AbortCause::capacity;
  if ((status & kAbortConflict) != 0) return AbortCause::unknown;  // hardware does not say which word
  return AbortCause::interrupt;
}

// tries: hardware attempts of this transaction so far, the one that aborted included.
constexpr Next next_after(unsigned status, unsigned tries) noexcept {
  if (tries >= kTriesMax) return Next::fall_back;
  switch (cause_of(status)) {
    case AbortCause::fallback:
      return Next::wait_and_try_again;
    case AbortCause::unknown:
      return Next::try_again;
    case AbortCause::reprovision:
      return Next::provide;
    default:
      return Next::fall_back;
  }
}

}  // namespace loam::tm::hardware
