#include "runtime/platform/stack.hpp"

#include "runtime/platform/keep_errno.hpp"

#include <cstddef>

#include <pthread.h>
#include <unwind.h>

namespace loam::platform {
namespace {

// The stack that the system gave to the calling thread, or nothing if it cannot be asked.
struct Bounds {
  std::uintptr_t low = 0, high = 0;
  bool known = false;

  bool hold(std::uintptr_t address) const noexcept { return low <= address && address < high; }
};

// Asking reads a file of the kernel's on the first thread, so it is done once in each thread. The first thread's stack
// grows downwards up to a limit; the bound is that limit's.
[[gnu::tls_model("initial-exec")]] thread_local constinit Bounds bounds;

[[gnu::noinline, gnu::cold]] void find_bounds() noexcept {
  const KeepErrno keep;
  bounds.known = true;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    bounds.low = reinterpret_cast<std::uintptr_t>(low);
    bounds.high = bounds.low + bytes;
  }
  pthread_attr_destroy(&attributes);
}

// A frame that a signal interrupted ends the walk: its handler may run on a stack of its own.
[[gnu::noinline, gnu::cold]] bool frames_reach(std::uintptr_t above) noexcept {
  struct Walk {
    std::uintptr_t above;
    bool reached;
  } walk{above, false};
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* argument) {
        Walk& state = *static_cast<Walk*>(argument);
        int before_instruction = 0;  // set where a frame was interrupted instead of having called
        _Unwind_GetIPInfo(context, &before_instruction);
        if (before_instruction != 0) return _URC_END_OF_STACK;
        state.reached = _Unwind_GetCFA(context) >= state.above;
        return state.reached ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &walk);
  return walk.reached;
}

}  // namespace

bool is_one_stack(std::uintptr_t here, std::uintptr_t above) noexcept {
  if (!bounds.known) [[unlikely]]
    find_bounds();
  // `above` may be the first address behind the stack.
  const bool here_on_own = bounds.hold(here), above_on_own = bounds.hold(above - 1);
  if (here_on_own || above_on_own) return here_on_own && above_on_own;
  return frames_reach(above);
}

}  // namespace loam::platform
