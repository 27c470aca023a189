// Guard pages in a process: call stacks, the signal of an access to a guard page, and the report.
//   LOAM_MALLOC_GUARD_MS=N turns them on; heap/sampled.hpp says which errors they find.
//   The handler of SIGSEGV is set before main(). A signal that does not belong to a sample goes to the previous
//   handler, or ends the process as it would have without this library. If a program sets its own handler later, that
//   handler gets the signals, and no report is written.
#pragma once

#include "runtime/heap/sampled_blocks.hpp"
#include "runtime/malloc/fault.hpp"

namespace loam::malloc {

// Loads the code that walks a stack, and sets the handler. Called once, before other threads run.
void watch_guard_pages() noexcept;

// Loads the code that walks a stack, as watch_guard_pages() does.
void load_call_stacks() noexcept;

// The call stack of the caller. It is empty before that code is loaded, and inside a call of itself.
heap::CallStack call_stack() noexcept;

// Writes the report about a sample, with the call stacks of the caller, of the free and of the allocation, and ends the
// process by abort().
[[noreturn, gnu::cold, gnu::noinline]] void report_sample(Fault kind, const void* address,
                                                          const heap::SampledBlock& block) noexcept;

}  // namespace loam::malloc
