// stack: whether two addresses lie on one stack. A thread has its own stack; programs with coroutines, fibers or signal
// handlers on a stack of their own have more.
#pragma once

#include <cstdint>

namespace loam::platform {

// Whether the caller's frames reach up from `here` (an address in or below the caller's frame) to `above`, which is not
// below it. Exact on the stack that the system gave to the thread. On another stack the caller's frames are unwound,
// which takes microseconds; a function without unwind tables ends them.
bool is_one_stack(std::uintptr_t here, std::uintptr_t above) noexcept;

}  // namespace loam::platform
