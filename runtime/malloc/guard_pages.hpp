// Guard pages from the process's side: call stacks, the signal of an access that a page stopped, and the report.
//   LOAM_MALLOC_GUARD_MS=N turns them on; heap/sampled.hpp says what they find.
//   The handler of SIGSEGV is set before main(). What it is not about goes to the handler before it, or ends the process
//   as ever. A program that sets a handler of its own later gets the signals, and no report is written.
#pragma once

#include "runtime/heap/sampled_blocks.hpp"
#include "runtime/malloc/fault.hpp"

namespace loam::malloc {

// Once, before other threads run: loads what walks a stack, and sets the handler.
void watch_guard_pages() noexcept;

// Where the caller is. Without frames before watch_guard_pages(), and within a call of itself.
heap::CallStack call_stack() noexcept;

// Writes what was found about a sample, with the call stacks of the caller, of the free and of the allocation, and ends
// the process by abort().
[[noreturn, gnu::cold, gnu::noinline]] void report_sample(Fault kind, const void* address,
                                                          const heap::SampledBlock& block) noexcept;

}  // namespace loam::malloc
