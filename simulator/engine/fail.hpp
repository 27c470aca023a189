// Messages of the simulator on standard error, without libc's streams: they would call the program's allocator.
#pragma once

#include "runtime/base/format.hpp"
#include "simulator/engine/kernel.hpp"

namespace loam::simulator {

inline constexpr int kExitFailed = 2;

inline void say_line(std::string_view text) noexcept {
  kernel(SYS_write, 2, word_of(text.data()), static_cast<long>(text.size()));
}

// One line: "simulator: ...".
template <class... Values>
void say(std::string_view format, const Values&... values) noexcept {
  char text[1024], line[1100];
  say_line(base::format_to(line, "simulator: {}\n", base::format_to(text, format, values...)));
}

[[noreturn]] inline void leave() noexcept {
  for (;;) kernel(SYS_exit_group, kExitFailed);
}

template <class... Values>
[[noreturn]] void fail(std::string_view format, const Values&... values) noexcept {
  say(format, values...);
  leave();
}

}  // namespace loam::simulator
