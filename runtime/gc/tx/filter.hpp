// DuplicateFilter: objects and words that a transaction has enlisted or logged recently.
//   A direct-mapped table. A key is an address in steps of 8 bytes, with a token in its upper bits; a new token empties
//   the table. An object's address and those of its words differ, so both share the table.
//   Cost  a hit: shift, mask, xor, compare. The code that logs the object uses the shifted address again.
//   A yes is always right; a no may be wrong, because newer entries replace old.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::gc {

class DuplicateFilter {
 public:
  static constexpr unsigned kStepShift = 3;  // of addresses: objects and words are multiples of 8 bytes
  [[gnu::always_inline]] static std::uintptr_t steps_of(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) >> kStepShift;
  }

  // Whether seen() was called with this address before, since the last renew(). false if a newer entry replaced it.
  // steps: steps_of(the address)
  [[gnu::always_inline]] bool seen(std::uintptr_t steps) noexcept {
    std::uint64_t& place = table_[steps % kPlaces];
    const std::uint64_t key = steps ^ token_;
    if (place == key) return true;
    place = key;
    return false;
  }

  void renew() noexcept {
    token_ += std::uint64_t{1} << kTokenShift;
    if (token_ != 0) return;
    table_.fill(0);
    token_ = std::uint64_t{1} << kTokenShift;
  }

 private:
  static constexpr std::size_t kPlaces = 2048;
  static constexpr unsigned kTokenShift = 48;

  std::uint64_t token_ = std::uint64_t{1} << kTokenShift;
  std::array<std::uint64_t, kPlaces> table_{};
};

}  // namespace loam::gc
