// A test that hangs ends within seconds and says its name (main.cpp); ctest's timeout is the last net.
//   A test may take kTestSeconds on a machine with a processor for each thread that wants one; in proportion longer on
//   a busier one, and with LOAM_TEST_ALL, where tests do more.
//   LOAM_TEST_SECONDS=N   N seconds for each test instead; 0: for ever, for a debugger
#pragma once

#include "tests/harness/instrumented.hpp"

namespace loam::tests {

inline constexpr unsigned kTestSeconds = kInstrumented ? 30 : 10;

// For the test that runs, if it is known to take longer.
void may_take(unsigned seconds) noexcept;

}  // namespace loam::tests
