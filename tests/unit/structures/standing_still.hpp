// One thread is stopped at a test point of a structure while others work.
#pragma once

#include "runtime/base/points.hpp"

#include <atomic>
#include <string_view>
#include <thread>

#ifdef LOAM_CHECKED
namespace loam::structures {

inline std::string_view stand_still_at;
inline std::atomic<int> standing_still{0};
inline thread_local constinit bool may_stand_still = false;

inline void stand_still(const char* name) {
  if (!may_stand_still || name != stand_still_at) return;
  may_stand_still = false;
  standing_still = 1;
  while (standing_still != 2) std::this_thread::yield();
}

// stopped(): in a thread that stops when it comes to the point; others(): meanwhile
template <class Stopped, class Others>
void while_standing_still(std::string_view point, Stopped&& stopped, Others&& others) {
  stand_still_at = point;
  standing_still = 0;
  base::point_hook.store(&stand_still);
  std::thread thread([&] {
    may_stand_still = true;
    stopped();
  });
  while (standing_still != 1) std::this_thread::yield();
  others();
  standing_still = 2;
  thread.join();
  base::point_hook.store(nullptr);
}

}  // namespace loam::structures
#endif
