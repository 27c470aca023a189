// Where the summary at exit goes when a program has closed standard error.
#include "runtime/malloc/last_words.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>

namespace loam::malloc {
namespace {

// The number under which standard error was kept: the first open one from 200.
int keep() {
  keep_standard_error();
  int number = 200;
  while (fcntl(number, F_GETFD) < 0) ++number;
  return number;
}

// Each in a process of its own, since descriptors are closed.
void expect_in_a_child(bool (*holds)()) { EXPECT_EXIT(_exit(holds() ? 0 : 1), testing::ExitedWithCode(0), ""); }

TEST(LastWords, GoToStandardErrorWhileItIsOpen) {
  expect_in_a_child([] {
    keep();
    return descriptor_for_last_words() == STDERR_FILENO;
  });
}

TEST(LastWords, GoToWhatWasKeptOnceItIsClosed) {
  expect_in_a_child([] {
    const int kept = keep();
    close(STDERR_FILENO);
    return descriptor_for_last_words() == kept;
  });
}

TEST(LastWords, GoNowhereWhereThatIsClosedAsWell) {
  expect_in_a_child([] {
    close(keep());
    close(STDERR_FILENO);
    return descriptor_for_last_words() == STDERR_FILENO;
  });
}

TEST(LastWords, AreNotWrittenIntoAFileOfTheProgram) {
  expect_in_a_child([] {
    const int kept = keep(), file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(file, kept);
    close(STDERR_FILENO);
    return descriptor_for_last_words() == STDERR_FILENO;
  });
}

// Another file on the same device: only the inode number distinguishes the two.
TEST(LastWords, AreNotWrittenIntoAnotherFileOfTheSameDevice) {
  expect_in_a_child([] {
    std::FILE *const ours = std::tmpfile(), *const of_program = std::tmpfile();
    dup2(fileno(ours), STDERR_FILENO);
    const int kept = keep();
    dup2(fileno(of_program), kept);
    close(STDERR_FILENO);
    return descriptor_for_last_words() == STDERR_FILENO;
  });
}

TEST(LastWords, AreClosedByExec) {
  expect_in_a_child([] { return (fcntl(keep(), F_GETFD) & FD_CLOEXEC) != 0; });
}

}  // namespace
}  // namespace loam::malloc
