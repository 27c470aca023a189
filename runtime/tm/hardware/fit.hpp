// Fit: whether the transactions of one place of a program fit into the hardware, as one thread has seen it.
//   If a transaction does not fit, its hardware attempt is lost, and the whole transaction runs once more. If the last
//   transactions did not fit, some of the next ones do not try hardware: two after two misses in a row, then six, then
//   fourteen, at most kSkipMax. A transaction that fits ends this.
//   Cost      a load and a comparison before an attempt.
//   When not  a place where every other transaction fits: it never has two misses in a row, so each miss costs an
//             attempt.
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
  // An attempt has aborted because the hardware could not track its memory.
  void did_not_fit() noexcept {
    if ((std::uint32_t{2} << misses_) - 2 <= kSkipMax) ++misses_;
    skips_ = (std::uint32_t{1} << misses_) - 2;
  }

 private:
  std::uint32_t misses_ = 0;  // in a row; counted until skips_ reaches kSkipMax
  std::uint32_t skips_ = 0;   // transactions that will not try
};

}  // namespace loam::tm::hardware
