#include "runtime/itm/frames.hpp"

#include <unwind.h>

namespace loam::itm {

// The frames' ends, one after the other, of which the one above `stack` is looked for. 0 where the unwinder does not find
// it: a function without unwind tables.
std::size_t FrameSizes::measure(std::uintptr_t stack) noexcept {
  struct Search {
    std::uintptr_t stack, end;
  } search{stack, stack};
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* argument) {
        auto& wanted = *static_cast<Search*>(argument);
        const auto end = static_cast<std::uintptr_t>(_Unwind_GetCFA(context));
        if (end <= wanted.stack) return _URC_NO_REASON;
        wanted.end = end;
        return _URC_NORMAL_STOP;
      },
      &search);
  return search.end - stack;
}

}  // namespace loam::itm
