// What lies where in the process: copied from the kernel's list when an address is met that was not in it before.
//   Read without the memory of a stream, and without the loader's lock: a forked child, or a program that loads a library
//   just now, must not wait for the monitor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "log.hpp"

namespace loam::interposer::sharing {

class Maps {
 public:
  static constexpr std::size_t kRanges = 8192;

  bool known(std::uintptr_t address) const noexcept {
    for (std::size_t at = 0; at < count_; ++at)
      if (address - ranges_[at].start < ranges_[at].bytes) return true;
    return false;
  }

  bool is_code(std::uintptr_t address) const noexcept {
    for (std::size_t at = 0; at < count_; ++at)
      if (address - ranges_[at].start < ranges_[at].bytes) return ranges_[at].code;
    return false;
  }

  void read(Log& log) noexcept {
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    count_ = 0;
    log.say("maps\n");
    char text[8192];
    std::size_t kept = 0;
    for (;;) {
      const ssize_t n = ::read(file, text + kept, sizeof text - kept);
      if (n <= 0) break;
      kept += static_cast<std::size_t>(n);
      char* line = text;
      for (char* end;
           (end = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(text + kept - line)))) != nullptr;
           line = end + 1)
        take(line, end, log);
      kept = static_cast<std::size_t>(text + kept - line);
      std::memmove(text, line, kept);
      if (kept == sizeof text) break;  // no line is so long
    }
    close(file);
  }

 private:
  struct Range {
    std::uintptr_t start, bytes;
    bool code;
  };

  void take(const char* line, char* end, Log& log) noexcept {
    *end = '\0';
    char* rest = nullptr;
    const std::uintptr_t start = std::strtoull(line, &rest, 16);
    if (*rest != '-') return;
    const std::uintptr_t stop = std::strtoull(rest + 1, &rest, 16);
    if (rest[0] == ' ' && rest[1] == '-') return;  // a guard page, or reserved addresses
    if (count_ < kRanges) ranges_[count_++] = {start, stop - start, rest[0] == ' ' && rest[3] == 'x'};
    log.say("map %s\n", line);
  }

  Range ranges_[kRanges];
  std::size_t count_ = 0;
};

}  // namespace loam::interposer::sharing
