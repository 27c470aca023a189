// Cases that need a process of their own: the mapping of ownership records is chosen once per process, address space
// is limited, or the process is expected to end.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loam::tests {

// Runs `body` in a forked copy of this process; failures there fail the test here. The caller must be single-threaded.
template <class Body>
void in_child(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0) << "fork failed";
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is ended for taking too long leaves nobody behind
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "exception in the child: " << error.what();
    }
    std::fflush(nullptr);
    // No destructors and no leak report: what the parent made is the parent's to check.
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "the child ended by signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the child failed, see above";
  }
}

// Forks, also if the process has several threads, and runs body() in the child. returns whether body() returned true
// there within ten seconds
template <class Body>
bool in_fork(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace loam::tests
