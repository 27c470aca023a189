// The destination of the summary at exit: standard error, even if the program closes it before it ends, as GNU's tools
// do to notice write errors. Used only if the summary is on, because it takes one more descriptor.
#pragma once

namespace loam::malloc {

// Duplicates standard error to a number that programs rarely use. The copy is closed by exec.
void keep_standard_error() noexcept;

// Standard error if it is open; otherwise the copy, if that still is the same file; otherwise standard error.
int descriptor_for_last_words() noexcept;

}  // namespace loam::malloc
