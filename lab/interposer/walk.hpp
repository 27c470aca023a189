// The call stack of who called a library of ours, without the library's own frames.
//   Frames of the library are known by their addresses; inlining decides how many there are.
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>

namespace loam::interposer {

extern "C" const char __ehdr_start __attribute__((visibility("hidden")));
extern "C" const char _end __attribute__((visibility("hidden")));

inline bool is_own(std::uintptr_t address) noexcept {
  return address >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(&_end);
}

template <std::size_t kDepth>
struct Walk {
  std::uintptr_t callers[kDepth];  // from the innermost outwards
  std::size_t depth = 0;

  void take() noexcept {
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void* argument) {
          Walk& walk = *static_cast<Walk*>(argument);
          const std::uintptr_t address = _Unwind_GetIP(context);
          if (address == 0) return _URC_END_OF_STACK;
          if (is_own(address)) return _URC_NO_REASON;
          walk.callers[walk.depth++] = address;
          return walk.depth == kDepth ? _URC_END_OF_STACK : _URC_NO_REASON;
        },
        this);
  }

  // FNV-1a over the addresses as they are; users spread it over their tables by themselves.
  std::uint64_t hash() const noexcept {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (std::size_t at = 0; at < depth; ++at) hash = (hash ^ callers[at]) * 0x100000001B3;
    return hash;
  }
};

}  // namespace loam::interposer
