// Where a function was called from, by the top of its stack.
//   A word of the stack that leads behind a call instruction is most likely a return address.  So a wait in a function of the
//   C library gets the name of who called it, without unwinding.
//   When not words that an earlier call has left where the function has not written yet: they are taken for its callers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "maps.hpp"
#include "memory.hpp"

namespace loam::interposer::sharing {

class Callers {
 public:
  static constexpr std::size_t kMost = 4;
  std::uintptr_t address[kMost];
  std::size_t count = 0;

  // stack: its words, from the top on
  Callers(const std::uint64_t* stack, std::size_t words, const Maps& maps) noexcept {
    for (std::size_t at = 0; at < words && count < kMost; ++at)
      if (maps.is_code(stack[at]) && follows_a_call(stack[at])) address[count++] = stack[at];
  }

 private:
  static constexpr std::size_t kLongest = 7;  // bytes of a call

  static bool follows_a_call(std::uintptr_t address) noexcept {
    std::uint8_t before[kLongest + 1] = {};
    if (!read_memory(address - kLongest, before, kLongest)) return false;
    if (before[kLongest - 5] == 0xE8) return true;  // a distance of 32 bits
    // Through a register or memory: FF, and 2 in the middle of the next byte.
    for (std::size_t at = 0; at + 1 < kLongest; ++at)
      if (before[at] == 0xFF && (before[at + 1] >> 3 & 7) == 2 && length(before + at) == kLongest - at) return true;
    return false;
  }

  // Of a call of that form.
  static std::size_t length(const std::uint8_t* call) noexcept {
    const unsigned mode = call[1] >> 6, base = call[1] & 7;
    if (mode == 3) return 2;
    std::size_t bytes = 2;
    if (base == 4) ++bytes;
    const unsigned inner = base == 4 ? call[2] & 7U : base;
    if (mode == 1) return bytes + 1;
    return mode == 2 || inner == 5 ? bytes + 4 : bytes;
  }
};

}  // namespace loam::interposer::sharing
