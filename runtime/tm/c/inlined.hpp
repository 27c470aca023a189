// inlined: programs in C whose accesses are compiled for one algorithm (LOAM_TM_ALGORITHM, include/loam/tm_norec.h).
#pragma once

#include <string_view>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

// The algorithm that some accesses of the process are compiled for; empty: there are none, and any will do.
std::string_view inlined_algorithm() noexcept;

// Fatal if `algorithm`, which the process's transactions use, is not that one.
void check_inlined(std::string_view algorithm) noexcept;

}  // namespace open
}  // namespace loam::tm
