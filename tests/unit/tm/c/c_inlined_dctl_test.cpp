// Programs in C that are compiled with -DLOAM_TM_ALGORITHM=dctl.
#define LOAM_TM_ALGORITHM dctl
#include "tests/harness/c_inlined.hpp"
#include "tests/harness/c_inlined_misuse.hpp"
#include "tests/model/c_inlined_histories.hpp"
