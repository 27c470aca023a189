#include "workloads/harness/run_delay.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>

namespace loam::workloads {
namespace {

int open_counter() noexcept { return ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }

std::optional<std::uint64_t> delay_ns(int file) noexcept {
  char text[96];
  const auto length = ::pread(file, text, sizeof text, 0);
  if (length <= 0) return std::nullopt;
  // time on the processor, time waiting for it, times it got it
  const char* const end = text + length;
  const char* const blank = std::find<const char*>(text, end, ' ');
  if (blank == end) return std::nullopt;
  std::uint64_t waited_ns = 0;
  if (std::from_chars(blank + 1, end, waited_ns).ec != std::errc{}) return std::nullopt;
  return waited_ns;
}

// How often the calling thread has given up its processor by itself.
std::uint64_t sleeps() noexcept {
  rusage used{};
  return ::getrusage(RUSAGE_THREAD, &used) == 0 ? static_cast<std::uint64_t>(used.ru_nvcsw) : 0;
}

}  // namespace

std::optional<std::uint64_t> this_thread_run_delay_ns() noexcept {
  const int file = open_counter();
  if (file < 0) return std::nullopt;
  const auto delay = delay_ns(file);
  ::close(file);
  return delay;
}

RunDelay::RunDelay() noexcept : file_(open_counter()) {
  if (file_ >= 0 && !delay_ns(file_)) {
    ::close(file_);
    file_ = -1;
  }
  if (file_ >= 0) taken_ns();
}

RunDelay::~RunDelay() {
  if (file_ >= 0) ::close(file_);
}

std::uint64_t RunDelay::taken_ns() noexcept {
  const std::uint64_t before_ns = delay_ns_, sleeps_before = sleeps_;
  delay_ns_ = delay_ns(file_).value_or(before_ns);
  sleeps_ = sleeps();
  const std::uint64_t waited_ns = delay_ns_ - before_ns, own_ns = (sleeps_ - sleeps_before) * kWakeUpNs;
  return waited_ns - std::min(waited_ns, own_ns);
}

}  // namespace loam::workloads
