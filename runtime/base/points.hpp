// Test points: places where a test may stall a thread, inject a fault or count that a rare branch was reached.
//   LOAM_POINT(name) calls the hook of the test in checked builds and is nothing at all elsewhere.
#pragma once

#ifdef LOAM_CHECKED
#include <atomic>

namespace loam::base {

using PointHook = void (*)(const char* name);

// One hook per process, set before the threads that meet it start and cleared after they have ended.
inline std::atomic<PointHook> point_hook{nullptr};

inline void reach_point(const char* name) {
  // point.A: acquire pairs with the store of a test that also prepared what the hook reads.
  if (const PointHook hook = point_hook.load(std::memory_order_acquire)) hook(name);
}

}  // namespace loam::base

#define LOAM_POINT(name) ::loam::base::reach_point(name)
#else
#define LOAM_POINT(name) \
  do {                   \
  } while (false)
#endif
