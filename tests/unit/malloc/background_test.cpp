// The thread of LOAM_MALLOC_BACKGROUND=1: where there is one, when a child of a fork gets its own, and that no signal
// reaches it. Each test runs once more in a process that has asked for it.
#include "tests/harness/child.hpp"
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

// Whether this process has asked for it. In the other one, runs the current test in one that has.
bool has_asked() {
  if (std::getenv("LOAM_MALLOC_BACKGROUND") != nullptr) return true;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Finished done =
      run("LOAM_MALLOC_BACKGROUND=1 " + self + " --gtest_filter=" + test.test_suite_name() + "." + test.name());
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("[  PASSED  ] 1 test"), std::string::npos) << done.out;
  EXPECT_EQ(done.err, "");
  return false;
}

// The kernel's numbers of this process's threads.
std::vector<std::string> threads() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    all.push_back(entry.path().filename().string());
  return all;
}

// Waits for a thread that has just ended to be gone for the kernel as well.
std::size_t threads_in_the_end(std::size_t expected) {
  for (int i = 0; i < 2000 && threads().size() != expected; ++i) usleep(1000);
  return threads().size();
}

TEST(Background, ThereIsOneWhereItIsAskedForAndNoneElsewhere) {
  if (!has_asked()) {
    EXPECT_EQ(threads().size(), 1u);
    std::free(std::malloc(opaque(std::size_t{64} << 20)));
    std::thread([] { std::free(std::malloc(opaque<std::size_t>(100))); }).join();
    EXPECT_EQ(threads_in_the_end(1), 1u);
    return;
  }
  EXPECT_EQ(threads().size(), 2u);
  std::free(std::malloc(opaque(std::size_t{64} << 20)));
  std::thread([] { std::free(std::malloc(opaque<std::size_t>(100))); }).join();
  EXPECT_EQ(threads_in_the_end(2), 2u) << "one is enough";
}

TEST(Background, AChildOfAForkGetsItsOwnWithItsFirstLongBlock) {
  if (!has_asked()) return;
  in_child([] {
    EXPECT_EQ(threads().size(), 1u);
    std::free(std::malloc(opaque<std::size_t>(100)));
    EXPECT_EQ(threads().size(), 1u) << "a handler of a signal may have forked";
    std::free(std::malloc(opaque(std::size_t{64} << 20)));
    EXPECT_EQ(threads().size(), 2u);
    std::free(std::malloc(opaque(std::size_t{64} << 20)));
    EXPECT_EQ(threads().size(), 2u);
  });
  EXPECT_EQ(threads().size(), 2u) << "nothing changes in the parent";
}

TEST(Background, AChildOfAForkGetsItsOwnWithItsFirstThread) {
  if (!has_asked()) return;
  in_child([] {
    EXPECT_EQ(threads().size(), 1u);
    std::thread([] { std::free(std::malloc(opaque<std::size_t>(100))); }).join();
    EXPECT_EQ(threads_in_the_end(2), 2u);
  });
}

TEST(Background, ItTakesNoSignalAndTheProgramsThreadsTakeThemAsBefore) {
  if (!has_asked()) return;
  const auto blocked_of = [](const std::string& thread) {
    std::ifstream file("/proc/self/task/" + thread + "/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
    return 0ULL;
  };
  const auto all = threads();
  ASSERT_EQ(all.size(), 2u);
  const std::string first = std::to_string(getpid());
  const std::string& helper = all[0] == first ? all[1] : all[0];
  // What may be blocked: not SIGKILL and SIGSTOP, nor the two that libc keeps for itself.
  constexpr unsigned long long kAll = ~0ULL & ~(1ULL << (SIGKILL - 1)) & ~(1ULL << (SIGSTOP - 1)) & ~(3ULL << 31);
  EXPECT_EQ(blocked_of(helper) & kAll, kAll);
  EXPECT_EQ(blocked_of(first), 0u);
  in_child([&] {
    std::free(std::malloc(opaque(std::size_t{64} << 20)));
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    for (int number = 1; number < 32; ++number) EXPECT_EQ(sigismember(&now, number), 0) << number;
  });
}

}  // namespace
}  // namespace loam::tests
