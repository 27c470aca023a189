// Whether the compiler instruments this build: tests do less then, and only what a sanitizer's own allocator allows.
#pragma once

namespace loam::tests {

inline constexpr bool kInstrumented =
#ifdef LOAM_INSTRUMENTED
    true;
#else
    false;
#endif

}  // namespace loam::tests
