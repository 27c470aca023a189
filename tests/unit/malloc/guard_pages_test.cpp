// Blocks between guard pages (LOAM_MALLOC_GUARD_MS): what is found beside them, and what is passed on. Each test runs once
// more in a process that samples from its start. tests/lab/test_guard_pages.py looks at the call stacks.
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

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

// A program may install a handler of SIGSEGV before the library does. If it is asked to, this program does so before
// all constructors. "plain": a handler with one parameter; "informed": one with three
extern "C" void plain_handler(int number) {
  constexpr char kMine[] = "plain\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMine, sizeof kMine - 1);
  _exit(number == SIGSEGV ? 3 : 4);
}
extern "C" void informed_handler(int number, siginfo_t* information, void* context) {
  constexpr char kMine[] = "informed\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMine, sizeof kMine - 1);
  _exit(number == SIGSEGV && information->si_addr == nullptr && context != nullptr ? 3 : 4);
}
constexpr std::string_view kEarlyHandler = "LOAM_TEST_EARLY_HANDLER=";
void handle_early(int, char**, char** environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (!variable.starts_with(kEarlyHandler)) continue;
    struct sigaction early{};
    early.sa_handler = plain_handler;
    if (variable.ends_with("informed")) {
      early.sa_sigaction = informed_handler;
      early.sa_flags = SA_SIGINFO;
    }
    sigaction(SIGSEGV, &early, nullptr);
  }
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const preinit)(int, char**, char**) = handle_early;

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

TEST(GuardPages, AHandlerThatWasThereBeforeGetsWhatIsNoneOfOurs) {
  for (const char* handler : {"plain", "informed"}) {
    if (std::getenv("LOAM_MALLOC_GUARD_MS") != nullptr) {
      sample();
      touch(opaque<char*>(nullptr));
      _exit(9);
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const Finished done = run(std::string("LOAM_MALLOC_GUARD_MS=1 ") + kEarlyHandler.data() + handler + " " + self +
                              " --gtest_filter=GuardPages.AHandlerThatWasThereBeforeGetsWhatIsNoneOfOurs");
    EXPECT_EQ(done.status, 3) << handler;
    EXPECT_EQ(done.err, std::string(handler) + "\n");
  }
}

TEST(GuardPages, AHandlerOfSigabrtDoesNotKeepTheProcess) {
  if (!samples()) return;
  char* const block = sample();
  EXPECT_EXIT(signal(SIGABRT, [](int) { _exit(3); }); for (int i = 0; i < 8192; ++i) touch(block + i);
              , testing::KilledBySignal(SIGABRT), "allocated by thread");
  std::free(block);
}

// "    #N 0xADDRESS NAME+0xOFFSET (FILE+0xOFFSET)", of which the name may be missing.
struct Frame {
  unsigned number;
  std::uintptr_t address, file_begin;
  std::string file;
};
Frame frame_of(const std::string& line) {
  Frame frame{};
  const auto file = line.find(" ("), offset = line.rfind("+0x");
  EXPECT_EQ(std::sscanf(line.c_str(), "    #%u 0x%zx", &frame.number, &frame.address), 2) << line;
  EXPECT_TRUE(file != line.npos && offset != line.npos && file < offset && line.ends_with(")")) << line;
  const auto digits = line.find("0x") + 2;
  EXPECT_EQ(line.find_first_not_of("0123456789abcdef", digits), line.find(' ', digits)) << line;
  if (file == line.npos || offset == line.npos || offset < file) return frame;
  frame.file = line.substr(file + 2, offset - file - 2);
  frame.file_begin = frame.address - std::stoull(line.substr(offset + 3), nullptr, 16);
  return frame;
}

// Each frame of each stack has its number and a file. All frames of a file give the same start address of the file.
TEST(GuardPages, TheFramesOfAStackAreNumberedAndLieInTheirFiles) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  if (std::getenv("LOAM_MALLOC_GUARD_MS") != nullptr) {
    char* const block = sample();
    for (int i = 0; i < 8192; ++i) touch(block + i);
    _exit(9);
  }
  const Finished done = run("LOAM_MALLOC_GUARD_MS=1 " + self +
                            " --gtest_filter=GuardPages.TheFramesOfAStackAreNumberedAndLieInTheirFiles");
  EXPECT_EQ(done.status, 128 + SIGABRT);
  std::istringstream text(done.err);
  std::vector<std::string> stacks;
  std::map<std::string, std::uintptr_t> begins;
  unsigned next = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("  ") && line.ends_with(":") && line.find(" by thread ") != line.npos) {
      stacks.push_back(line.substr(2, line.find(' ', 2) - 2));
      next = 0;
    }
    if (!line.starts_with("    ")) continue;
    const Frame frame = frame_of(line);
    EXPECT_EQ(frame.number, next++) << done.err;
    EXPECT_EQ(frame.file_begin % 4096, 0u) << line;
    EXPECT_EQ(begins.emplace(frame.file, frame.file_begin).first->second, frame.file_begin) << line;
    if (stacks == std::vector<std::string>{"found"} && frame.number == 0) {
      EXPECT_EQ(std::filesystem::path(frame.file).filename(), std::filesystem::path(self).filename())
          << "what made the access comes first: " << done.err;
    }
  }
  EXPECT_EQ(stacks, (std::vector<std::string>{"found", "allocated"})) << done.err;
  EXPECT_GT(next, 0u) << "the last stack has frames: " << done.err;
  EXPECT_GE(begins.size(), 2u) << "the program and libc: " << done.err;
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
