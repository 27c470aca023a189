// kept: values of private variables that go back when an attempt, or a part of it, is undone.
//   T7    A variable is written only if its frame is there after the rollback. The frames between the rollback and the
//         code that goes on then are dead. The runtime's own functions lie there by now, and one of their return
//         addresses may lie where the variable was.
//   How   What is dead then is known when the variable is kept: all that lies between the stack pointer and the frames
//         to which control would return (platform::kept_stack). That is not noted at all. A variable between the
//         whole attempt's frames and those of a part is needed if the part is undone alone; it is noted as `in_frames`,
//         and skipped by a rollback that leaves its frame. Variables elsewhere come back: those in callers, on the heap,
//         on other threads' stacks and on those of coroutines.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <cstddef>

namespace loam::tm::lifecycle {

// Keeps the value of a private variable, which goes back to it if the attempt, or the innermost part, is taken back.
void keep(Descriptor& d, void* address, std::size_t bytes) noexcept;

// Restores what was kept since the log of handlers had `first`, the last value first. checkpoint: where control goes
void restore_kept(const Descriptor& d, std::size_t first, const platform::Checkpoint& checkpoint) noexcept;

// Where the whole attempt restarts, from within any part.
const platform::Checkpoint& outermost(const Descriptor& d) noexcept;

}  // namespace loam::tm::lifecycle
