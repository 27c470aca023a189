// Blocks between guard pages (LOAM_MALLOC_GUARD_MS): what is found beside them, and what is passed on. Each test runs once
// more in a process that samples from its start. tests/lab/test_guard_pages.py looks at the call stacks.
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace loam::tests {
namespace {

// Whether this is the process that samples. In the other one, runs the current test in it.
bool samples() {
  if (std::getenv("LOAM_MALLOC_GUARD_MS") != nullptr) return true;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Finished done =
      run("LOAM_MALLOC_GUARD_MS=1 " + self + " --gtest_filter=" + test.test_suite_name() + "." + test.name());
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("[  PASSED  ] 1 test"), std::string::npos) << done.out;
  return false;
}

constexpr std::size_t kBytes = 23;

// Only of a sample the usable size is what was asked for.
char* sample() {
  for (long i = 0; i < 100'000'000; ++i) {
    auto* const block = static_cast<char*>(std::malloc(opaque(kBytes)));
    if (malloc_usable_size(block) == kBytes) return block;
    if (i % 2 == 0) std::free(block);
  }
  return nullptr;
}

void touch(volatile char* byte) { *byte = 1; }

TEST(GuardPages, AnAccessPastABlockIsFound) {
  if (!samples()) return;
  char* const block = sample();
  ASSERT_NE(block, nullptr);
  fill(block, kBytes, 1);
  EXPECT_EXIT(for (int i = 0; i < 8192; ++i) touch(block + i);
              , testing::KilledBySignal(SIGABRT),
              "loam malloc: access past the end of a block: 0x[0-9a-f]+, a block of 23 bytes\n.*"
              "\n  the address is 0x[0-9a-f]+, byte [0-9]+ of the block\n");
  std::free(block);
}

TEST(GuardPages, AnAccessBelowABlockIsFound) {
  if (!samples()) return;
  char* const block = sample();
  EXPECT_EXIT(for (int i = 0; i < 8192; ++i) touch(block - i);
              , testing::KilledBySignal(SIGABRT),
              "loam malloc: access in front of a block: 0x[0-9a-f]+, a block of 23 bytes\n.*"
              "\n  the address is 0x[0-9a-f]+, byte -[0-9]+ of the block\n");
  std::free(block);
}

TEST(GuardPages, AnAccessToAFreedBlockIsFound) {
  if (!samples()) return;
  char* const block = sample();
  std::free(block);
  EXPECT_EXIT(touch(block + 3), testing::KilledBySignal(SIGABRT),
              "loam malloc: access to a freed block: 0x[0-9a-f]+, a block of 23 bytes\n.*"
              "byte 3 of the block\n  found by thread [0-9]+:\n.*\n  freed by thread [0-9]+:\n.*\n"
              "  allocated by thread [0-9]+:\n");
}

TEST(GuardPages, WhatIsFoundAtAFreeNamesTheBlock) {
  if (!samples()) return;
  char* const block = sample();
  EXPECT_EXIT((touch(block + kBytes), std::free(block)), testing::KilledBySignal(SIGABRT),
              "loam malloc: write past the end of a block: .*byte 23 of the block\n  found by thread [0-9]+:\n.*\n"
              "  allocated by thread");
  EXPECT_EXIT((std::free(block), std::free(block)), testing::KilledBySignal(SIGABRT),
              "loam malloc: double free: .*byte 0 of the block\n  found by thread [0-9]+:\n.*\n  freed by thread");
  fill(block, kBytes, 1);
  EXPECT_TRUE(is_filled(block, kBytes, 1));
  std::free(block);
}

TEST(GuardPages, OtherFaultsEndTheProcessAsEver) {
  if (!samples()) return;
  sample();
  EXPECT_EXIT(touch(opaque<char*>(nullptr)), testing::KilledBySignal(SIGSEGV), "^$");
  // Refused too, but no page of ours.
  void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EXIT(touch(static_cast<char*>(page)), testing::KilledBySignal(SIGSEGV), "^$");
  munmap(page, 4096);
}

TEST(GuardPages, AHandlerThatTheProgramSetsLaterGetsTheSignals) {
  if (!samples()) return;
  char* const block = sample();
  const auto handler = [](int) {
    constexpr char kMine[] = "mine\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMine, sizeof kMine - 1);
    _exit(3);
  };
  EXPECT_EXIT((signal(SIGSEGV, handler), touch(opaque<char*>(nullptr))), testing::ExitedWithCode(3), "^mine\n$");
  EXPECT_EXIT(signal(SIGSEGV, handler); for (int i = 0; i < 8192; ++i) touch(block + i);
              , testing::ExitedWithCode(3), "^mine\n$");
  std::free(block);
}

}  // namespace
}  // namespace loam::tests
