// The life of process and threads around the heap: fork, thread exit, start and end.
#pragma once

namespace loam::malloc {

// Tells that the calling thread has attached a heap, so that its end hands the heap over. The heap composition's
// Threads hook calls it (on_attach), each time a thread attaches, once the thread's heap is in place: the call may
// allocate. Also makes the fork handlers known, the first time.
void note_thread() noexcept;

// Starts the thread that gives memory back, where it is asked for and not there: in the child of a fork. Allocates.
void keep_helper() noexcept;

}  // namespace loam::malloc
