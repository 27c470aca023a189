// exceptions: C++ exceptions that an attempt has made, thrown or caught. An abort undoes this.
#pragma once

#include "runtime/itm/thread.hpp"

namespace loam::itm {

// Takes back the exceptions of the attempt, but those that were caught when there were `caught` of them.
void revert_exceptions(Thread& t, unsigned caught);

// An exception leaves the outermost transaction. header: as the unwinder passes it
void note_in_flight(Thread& t, void* header) noexcept;

}  // namespace loam::itm
