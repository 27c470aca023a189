// Where the summary at exit goes: standard error, also where the program closes it before it ends, as GNU's tools do to
// learn of write errors. Only if the summary is asked for: a process has a descriptor more then.
#pragma once

namespace loam::malloc {

// Keeps standard error as it is now, under a number that programs rarely reach. Closed by exec.
void keep_standard_error() noexcept;

// Standard error as it is now; where it is closed, what was kept; where that has become another file, standard error.
int descriptor_for_last_words() noexcept;

}  // namespace loam::malloc
