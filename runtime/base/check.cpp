#include "runtime/base/check.hpp"

#include <unistd.h>

namespace loam::base {

void die(std::string_view message, const char* file, int line) noexcept {
  char buffer[768];
  const auto text = base::format_to(buffer, "loam: {}\n  at {}:{}\n", message, std::string_view(file), line);
  // The result is of no use: the process ends in the next line.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace loam::base
