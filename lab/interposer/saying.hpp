// Text into a file, without the memory that a stream would ask the allocator for.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "counts.hpp"

namespace loam::interposer {

inline void write_text(int file, const char* text, std::size_t n) noexcept {
  while (n > 0) {
    const ssize_t done = write(file, text, n);
    if (done <= 0) return;
    text += done, n -= static_cast<std::size_t>(done);
  }
}

template <typename... Values>
void say(int file, const char* form, Values... values) noexcept {
  char text[512];
  const int n = std::snprintf(text, sizeof text, form, values...);
  if (n > 0) write_text(file, text, std::min<std::size_t>(static_cast<std::size_t>(n), sizeof text - 1));
}

inline void say_counts(int file, const char* name, const Count* counts, std::size_t n) noexcept {
  say(file, ",\"%s\":[", name);
  for (std::size_t at = 0; at < n; ++at)
    say(file, at == 0 ? "%llu" : ",%llu", static_cast<unsigned long long>(counts[at].get()));
  say(file, "]");
}

}  // namespace loam::interposer
