// pieces: what the programs of the schedule checker share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace loam::tests {

// Ends the program with status 1 where something is wrong.
inline void check(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

// Each body in a thread of its own; returns when all have ended.
template <class... Bodies>
void together(Bodies... bodies) {
  std::thread threads[] = {std::thread(bodies)...};
  for (auto& thread : threads) thread.join();
}

}  // namespace loam::tests
