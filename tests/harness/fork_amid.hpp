// A fork by one thread while another one is in the middle of a change.
#pragma once

#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>

namespace loam::tests {

inline constexpr unsigned kChildSeconds = 20;  // far beyond what a child takes on a busy machine

// Does `work`; where it reaches the point, another thread forks. returns the exit status of the child, which mends the
// heap and then does in_child()
template <class Heap>
int fork_amid(const char* point, const std::function<void()>& work, const std::function<int()>& in_child) {
  int status = -1;
  const Interpose amid(point, 0, [&] {
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGALRM, SIG_DFL);
      alarm(kChildSeconds);
      Heap::after_fork_in_child();
      _exit(in_child());
    }
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
  });
  work();
  EXPECT_TRUE(amid.reached()) << point;
  return status;
}

}  // namespace loam::tests
