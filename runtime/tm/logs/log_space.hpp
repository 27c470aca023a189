// log_space: one mapping for the logs of a thread. Each mapping takes four system calls, and a thread has up to ten logs,
// which it reserves within its first transaction.
#pragma once

#include <cstddef>

namespace loam::tm {

// While it lives, the logs that this thread reserves lie in its mapping, each from a page's start on. What they leave
// goes back. Where the system refuses the mapping, or it is full, they are mapped one by one.
class LogSpace {
 public:
  explicit LogSpace(std::size_t bytes) noexcept;
  LogSpace(const LogSpace&) = delete;
  LogSpace& operator=(const LogSpace&) = delete;
  ~LogSpace();

  // Pages that read as zero, backed as they are touched. returns nullptr where the system refuses them
  static void* map(std::size_t bytes) noexcept;

 private:
  std::byte* start_;
  const std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace loam::tm
