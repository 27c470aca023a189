// process: what happens to the whole process while transactions run.
//   fork   by any thread outside of transactions: it waits until no attempt runs, as a serial transaction does. The
//          child has the forking thread alone: slots, records and freed memory of the others are as if they had exited;
//          what they held back is lost to the child. No thread attaches meanwhile. In an irrevocable transaction nobody
//          else runs anyway: both processes go on with it. In any other: an error, for the child would hold a copy of
//          its locks.
//   exit   in a transaction that is not irrevocable: an error, since destructors of static objects would run inside it,
//          and what it wrote would be lost.
//   vfork, posix_spawn, _exit and exec are not seen.
#pragma once

namespace loam::tm::process {

// Sees to it that the handlers are installed. Once, before the first transaction of the process can begin.
void watch() noexcept;

}  // namespace loam::tm::process
