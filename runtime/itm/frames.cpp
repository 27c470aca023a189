#include "runtime/itm/frames.hpp"

#include <unwind.h>

namespace loam::itm {

// Walks the ends of the frames, and stops at the first one above `stack`. returns 0 if the unwinder does not find it,
// because the function has no unwind table
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
