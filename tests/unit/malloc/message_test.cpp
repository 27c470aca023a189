// Text that is written without standard I/O: all of it, whatever interrupts it, and errno as it was.
#include "runtime/malloc/message.hpp"

#include "tests/unit/malloc/blocks.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <string>
#include <thread>

namespace loam::tests {
namespace {

using malloc::say;

std::string read_all(int file) {
  std::string text(1 << 20, '\0');
  std::size_t used = 0;
  for (ssize_t got; used < text.size() && (got = read(file, text.data() + used, text.size() - used)) > 0;)
    used += static_cast<std::size_t>(got);
  text.resize(used);
  return text;
}

TEST(Message, IsWrittenWholeAndKeepsErrno) {
  for (const std::string_view text : {std::string_view(), std::string_view("x"), std::string_view("two\nlines\n")}) {
    int files[2];
    ASSERT_EQ(pipe(files), 0);
    errno = EXDEV;
    say(files[1], text);
    EXPECT_EQ(errno, EXDEV);
    close(files[1]);
    EXPECT_EQ(read_all(files[0]), text);
    close(files[0]);
  }
}

TEST(Message, NobodyWhoReadsItIsNoError) {
  errno = EXDEV;
  say(-1, "nowhere");
  EXPECT_EQ(errno, EXDEV);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  say(full, "no room");
  EXPECT_EQ(errno, EXDEV);
  close(full);
}

// A pipe takes a part of a long text; who waits for room is interrupted, and goes on behind what was taken.
TEST(Message, IsWrittenWholeThoughSignalsInterruptIt) {
  int files[2];
  ASSERT_EQ(pipe(files), 0);
  struct sigaction nothing{};
  nothing.sa_handler = [](int) {};  // without SA_RESTART: write() tells of it
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGUSR1, &nothing, &before), 0);
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i) text += std::to_string(i) + ' ';
  std::atomic<bool> is_written{false};
  std::thread writes([&] {
    say(files[1], text);
    is_written = true;
    close(files[1]);
  });
  for (int i = 0; i < 20; ++i) {
    usleep(1000);
    pthread_kill(writes.native_handle(), SIGUSR1);
  }
  EXPECT_FALSE(is_written) << "a pipe holds 64 KiB";
  const std::string got = read_all(files[0]);
  writes.join();
  EXPECT_EQ(got.size(), text.size());
  EXPECT_TRUE(got == text);
  close(files[0]);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace loam::tests
