// Programs in C that are compiled with -DLOAM_TM_ALGORITHM=etl-wb.
// clang-format off: the dash is no minus to the reader.
#define LOAM_TM_ALGORITHM etl-wb
// clang-format on
#include "tests/harness/c_inlined.hpp"
#include "tests/harness/c_inlined_misuse.hpp"
#include "tests/model/c_inlined_histories.hpp"
