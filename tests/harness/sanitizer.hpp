// Whether this build has the address or the thread sanitizer: tests do less then, and what its own allocator allows.
#pragma once

namespace loam::tests {

inline constexpr bool kUnderSanitizer =
#if defined(LOAM_ASAN) || defined(LOAM_TSAN)
    true;
#else
    false;
#endif

}  // namespace loam::tests
