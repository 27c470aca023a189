// exceptions: C++ exceptions that an attempt has made, thrown or caught. An abort undoes this.
#pragma once

#include "runtime/itm/thread.hpp"

namespace loam::itm {

// What a part of the attempt begins with.
ExceptionsMark exceptions_now(const Thread& t) noexcept;

// Undoes the exceptions that the attempt has thrown and caught since a moment; none: since its begin.
void revert_exceptions(Thread& t, const ExceptionsMark& to);

// Called when an exception leaves the outermost transaction. header: as the unwinder passes it
void note_in_flight(Thread& t, void* header) noexcept;

}  // namespace loam::itm
