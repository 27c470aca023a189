// Fit: whether the transactions of one place of a program fit into the hardware, as one thread has seen it.
//   One that does not fit costs an attempt, which is lost, and then the whole transaction once more. Where that happened to
//   the last ones, the next ones do not try: two of them, then six, then fourteen, at most kSkipMax. One that fits ends it.
//   Cost      a load and a comparison before an attempt.
//   When not  a place of which every other transaction fits: it never gets that far, and loses an attempt each time.
#pragma once

#include <cstdint>

namespace loam::tm::hardware {

class Fit {
 public:
  static constexpr std::uint32_t kSkipMax = 62;

  // Whether the next transaction tries. Call once for each.
  [[gnu::always_inline]] bool tries() noexcept {
    if (skips_ == 0) [[likely]]
      return true;
    --skips_;
    return false;
  }
  // An attempt has committed.
  [[gnu::always_inline]] void fitted() noexcept {
    if (misses_ != 0) [[unlikely]]
      misses_ = 0;
  }
  // An attempt has ended for lack of room.
  void did_not_fit() noexcept {
    if ((std::uint32_t{2} << misses_) - 2 <= kSkipMax) ++misses_;
    skips_ = (std::uint32_t{1} << misses_) - 2;
  }

 private:
  std::uint32_t misses_ = 0;  // in a row, as far as they count
  std::uint32_t skips_ = 0;   // transactions that will not try
};

}  // namespace loam::tm::hardware
