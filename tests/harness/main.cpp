// The main() of all tests: GoogleTest's, and a watchdog over each test.
//   The watchdog is an alarm, not a thread: tests fork, which takes a process of one thread. Forked children have no
//   alarm; they end with the test (child.hpp).
#include "tests/harness/watchdog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

namespace loam::tests {
namespace {

constexpr unsigned kAllFactor = 30;  // with LOAM_TEST_ALL tests do up to twenty times as much
constexpr unsigned kLookAgainSeconds = 2;

// Of the test that runs. The handler reads them, in whichever thread it runs, and may not format.
char message[512];
std::size_t message_bytes = 0;
timespec began{};
unsigned limit_seconds = 0;
bool grows_with_load = true;
unsigned processors = 1;

// How many threads want each processor, in hundredths, at least 100: the load average of the last minute.
unsigned load() noexcept {
  char text[32] = {};
  const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 100;
  const auto bytes = read(file, text, sizeof text - 1);
  close(file);
  unsigned hundredths = 0;  // the kernel writes two digits behind the point
  for (const char* c = text; bytes > 0 && *c != ' ' && *c != '\0'; ++c)
    if (*c != '.') hundredths = hundredths * 10 + static_cast<unsigned>(*c - '0');
  return std::max(100u, hundredths / processors);
}

void look(int) noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (grows_with_load &&
      static_cast<std::uint64_t>(now.tv_sec - began.tv_sec) * 100 < std::uint64_t{limit_seconds} * load()) {
    alarm(kLookAgainSeconds);
    return;
  }
  // Nothing can be done about a message that cannot be written.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, message_bytes);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void watch(const char* suite, const char* test, unsigned seconds) noexcept {
  const char* const said = std::getenv("LOAM_TEST_SECONDS");
  const char* const all = std::getenv("LOAM_TEST_ALL");
  grows_with_load = said == nullptr || *said == '\0';
  if (!grows_with_load)
    limit_seconds = static_cast<unsigned>(std::strtoul(said, nullptr, 10));
  else
    limit_seconds = all != nullptr && *all != '\0' ? seconds * kAllFactor : seconds;
  const int bytes = std::snprintf(message, sizeof message,
                                  "\nhangs: %s.%s (LOAM_TEST_SECONDS=0 lets it run on, for a debugger)\n", suite, test);
  message_bytes = std::min(static_cast<std::size_t>(std::max(bytes, 0)), sizeof message - 1);
  clock_gettime(CLOCK_MONOTONIC, &began);
  alarm(limit_seconds);
}

class Watchdog : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { watch(test.test_suite_name(), test.name(), kTestSeconds); }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

}  // namespace

void may_take(unsigned seconds) noexcept {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  watch(test->test_suite_name(), test->name(), seconds);
}

}  // namespace loam::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#ifdef LOAM_EMULATOR
  // A death test that starts this program anew starts the emulator with it.
  std::istringstream emulator(LOAM_EMULATOR);
  std::vector<std::string> words;
  for (std::string word; emulator >> word;) words.push_back(word);
  words.insert(words.end(), argv, argv + argc);
  testing::internal::SetInjectableArgvs(words);
#endif
  loam::tests::processors = std::max(1u, std::thread::hardware_concurrency());
  std::signal(SIGALRM, &loam::tests::look);
  testing::UnitTest::GetInstance()->listeners().Append(new loam::tests::Watchdog);  // GoogleTest deletes it
  return RUN_ALL_TESTS();
}
