// log_space: one mapping for what a thread needs: its descriptor and its logs. Each mapping takes four system calls, and
// a thread makes up to eleven within its first transaction.
#pragma once

#include <cstddef>

namespace loam::tm {

// While it lives, what this thread maps lies in its mapping, each from a page's start on. The addresses that are left
// stay reserved: to give them back would take as long as the mapping. Where the system refuses the mapping, or it is
// full, they are mapped one by one.
class LogSpace {
 public:
  explicit LogSpace(std::size_t bytes) noexcept;
  LogSpace(const LogSpace&) = delete;
  LogSpace& operator=(const LogSpace&) = delete;
  ~LogSpace();  // its mapping stays

  // Pages that read as zero, backed as they are touched. returns nullptr where the system refuses them
  static void* map(std::size_t bytes) noexcept;

 private:
  std::byte* start_;
  const std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace loam::tm
