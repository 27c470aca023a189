// Checks and fatal errors, with values.
//   LOAM_CHECK(condition, format, values...)    always on: the program cannot go on if it fails
//   LOAM_ASSERT(condition, format, values...)   in checked builds: one invariant, cited by its label
//   LOAM_FATAL(format, values...)                    ends the program with a message
// The format language is that of format_to() in format.hpp: each {} takes the next value. Nothing here allocates: an
// allocator under test, or a thread without a heap, may be the one that fails.
#pragma once

#include "runtime/base/format.hpp"

#include <cstdlib>
#include <string_view>

namespace loam::base {

// Writes "loam: MESSAGE" and the place to standard error and aborts the process. Async-signal-safe.
[[noreturn]] void die(std::string_view message, const char* file, int line) noexcept;

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void fatal_at(const char* file, int line, std::string_view format,
                                                     const Values&... values) noexcept {
  char buffer[512];
  die(base::format_to(buffer, format, values...), file, line);
}

}  // namespace loam::base

#define LOAM_FATAL(...) ::loam::base::fatal_at(__FILE__, __LINE__, __VA_ARGS__)

#define LOAM_CHECK(condition, ...)                             \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::loam::base::fatal_at(__FILE__, __LINE__, __VA_ARGS__); \
  } while (false)

#ifdef LOAM_CHECKED
#define LOAM_ASSERT(condition, ...) LOAM_CHECK(condition, __VA_ARGS__)
#else
#define LOAM_ASSERT(condition, ...) \
  do {                              \
  } while (false)
#endif
