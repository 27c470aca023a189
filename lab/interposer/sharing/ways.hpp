// The latest ways in which a thread allocated, each with what is known of its blocks before they are made.
//   A way is a call of an allocating function, by the address that it returns to, from a frame so high: of one wrapper, the
//   callers differ in height (sites.hpp).
//   One thread's: no atomics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks.hpp"

namespace loam::interposer::sharing {

class Ways {
 public:
  static constexpr std::size_t kKept = 32;

  // nullptr where it is not among those that are kept.
  [[gnu::always_inline]] const Blocks::Maker* find(std::uintptr_t caller, std::uintptr_t frame) const noexcept {
    const Way& way = ways_[place(caller, frame)];
    return way.caller == caller && way.frame == frame ? &way.maker : nullptr;
  }

  // In the place of another one.
  void keep(std::uintptr_t caller, std::uintptr_t frame, Blocks::Maker maker) noexcept {
    ways_[place(caller, frame)] = {caller, frame, maker};
  }

 private:
  struct Way {
    std::uintptr_t caller = 0, frame = 0;  // 0: none
    Blocks::Maker maker{};
  };

  static std::size_t place(std::uintptr_t caller, std::uintptr_t frame) noexcept {
    return (caller ^ frame >> 4) % kKept;  // frames are multiples of 16
  }

  Way ways_[kKept];
};

}  // namespace loam::interposer::sharing
