// frames: the size of the stack frame of a function that begins a transaction. The unwinder finds it, once for each
// place that begins a transaction, because this takes microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::itm {

class FrameSizes {
 public:
  // return_address: of the begin; stack: where the stack of the function ended at that call. returns the frame's bytes
  std::size_t at(std::uintptr_t return_address, std::uintptr_t stack) noexcept {
    Place& place = places_[return_address / 4 % places_.size()];
    if (place.return_address != return_address) [[unlikely]]
      place = {return_address, measure(stack)};
    return place.bytes;
  }

 private:
  struct Place {
    std::uintptr_t return_address = 0;
    std::size_t bytes = 0;
  };

  static std::size_t measure(std::uintptr_t stack) noexcept;

  std::array<Place, 256> places_;
};

}  // namespace loam::itm
