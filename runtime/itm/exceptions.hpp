// exceptions: C++ exceptions that an attempt has made, thrown or caught. An abort undoes this.
#pragma once

#include "runtime/itm/thread.hpp"

namespace loam::itm {

// Undoes the exceptions of the attempt, except the first `caught` ones that it has caught.
void revert_exceptions(Thread& t, unsigned caught);

// Called when an exception leaves the outermost transaction. header: as the unwinder passes it
void note_in_flight(Thread& t, void* header) noexcept;

}  // namespace loam::itm
