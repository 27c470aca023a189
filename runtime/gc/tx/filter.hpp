// DuplicateFilter: objects and words that a transaction has enlisted or logged recently.
//   A direct-mapped table. A key is an address with a token in its upper bits; a new token empties the table. An
//   object's address and those of its words differ, so both share the table.
//   Cost  a hit: shift, mask, xor, compare.   A yes is always right; a no may be wrong, because newer entries replace
//         old.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::gc {

class DuplicateFilter {
 public:
  // Whether it has been asked before for this address, since the last renew(), as far as it remembers.
  [[gnu::always_inline]] bool seen(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    std::uint64_t& place = table_[(at >> 3) % kPlaces];
    const std::uint64_t key = at ^ token_;
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
