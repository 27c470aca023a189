// Included by tests of code with barriers: a transaction of the only thread would run without them (runtime/itm/alone.hpp).
#pragma once

#include <cstdlib>

namespace loam::tests {

// Before the first transaction; what a death test starts inherits it.
inline const int with_barriers = ::setenv("LOAM_ITM_ALONE", "off", 1);

}  // namespace loam::tests
