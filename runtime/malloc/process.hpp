// Events of process and threads that concern the heap: fork, thread exit, start and end.
#pragma once

namespace loam::malloc {

// Notes that the calling thread has attached a heap, so that the heap is handed over when the thread ends. The heap
// composition's Threads hook calls it each time a thread attaches, after the thread has its heap, because this call may
// allocate. The first call also registers the fork handlers.
void note_thread() noexcept;

// Starts the helper thread if it is on and does not run: in the child of a fork. Allocates.
void keep_helper() noexcept;

}  // namespace loam::malloc
