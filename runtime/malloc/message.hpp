// Text for people, by write(2): standard I/O would call the allocator. Keeps errno; async-signal-safe.
#pragma once

#include "runtime/platform/keep_errno.hpp"

#include <unistd.h>
#include <cerrno>
#include <string_view>

namespace loam::malloc {

inline void say(int descriptor, std::string_view text) noexcept {
  const platform::KeepErrno keep;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      break;  // nobody reads: there is no other place to say it
    }
  }
}

}  // namespace loam::malloc
