// LOAM_MALLOC_APART in a process: the file is read at the first allocation; wrong files, other builds, and sites that were
// never reached are named on standard error.
#pragma once

namespace loam::malloc {

// Names what is wrong with the file, and the modules of other builds. Called once, before other threads run.
void begin_apart() noexcept;

// Names the sites that this process never reached, if the file was written for its program. Not in the child of a fork.
void end_apart() noexcept;

}  // namespace loam::malloc
