#include "workloads/harness/run_delay.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>

namespace loam::workloads {

std::optional<std::uint64_t> this_thread_run_delay_ns() noexcept {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char text[96];
  const auto length = ::read(file, text, sizeof text);
  ::close(file);
  if (length <= 0) return std::nullopt;
  // time on the processor, time waiting for it, slices
  const char* const end = text + length;
  const char* const blank = std::find<const char*>(text, end, ' ');
  if (blank == end) return std::nullopt;
  std::uint64_t waited_ns = 0;
  if (std::from_chars(blank + 1, end, waited_ns).ec != std::errc{}) return std::nullopt;
  return waited_ns;
}

}  // namespace loam::workloads
