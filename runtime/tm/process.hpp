// process: fork and exit while transactions run.
//   fork   by any thread outside of transactions: waits until no attempt runs, as a serial transaction does, and no
//          thread attaches meanwhile. The child has only the forking thread. Slots, records and freed memory of
//          the other threads are handled as if these had exited; the memory that they held back is lost in the child.
//          Inside an irrevocable transaction no other transaction runs, and both processes continue with it. Inside any
//          other transaction fork is an error: the child would hold a copy of its locks.
//   exit   inside a transaction that is not irrevocable is an error: destructors of static objects would run inside it,
//          and its writes would be lost.
//   vfork, posix_spawn, _exit and exec are not noticed.
#pragma once

namespace loam::tm::process {

// Installs the handlers of fork(), at its first call. A library whose own handlers must run before these calls this
// function before it installs its own.
void watch_forks() noexcept;

// Installs all handlers, also that of exit(). Called once, before the first transaction of the process can begin.
void watch() noexcept;

}  // namespace loam::tm::process
