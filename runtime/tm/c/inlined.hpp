// inlined: programs in C whose accesses are compiled for one algorithm (LOAM_TM_ALGORITHM, include/loam/tm_inlined.h).
#pragma once

#include <string_view>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

// The algorithm for which some accesses of the process are compiled; empty if there are no such accesses.
std::string_view inlined_algorithm() noexcept;

// Ends the program if that is another algorithm than `algorithm`, which the process's transactions use.
void check_inlined(std::string_view algorithm) noexcept;

}  // namespace open
}  // namespace loam::tm
