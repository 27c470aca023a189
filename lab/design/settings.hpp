// Settings of an allocator of this folder, from its environment variables. What the variable cannot mean ends the program
// with a message: a run with other settings than asked for would be measured as what it is not.
#pragma once

#include "runtime/base/check.hpp"

#include "runtime/platform/machine.hpp"

#include <unistd.h>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The dynamic linker's: where the arguments of the process begin.
extern "C" LOAM_MAY_BE_MISSING void* __libc_stack_end;

namespace loam::design {

// The value of an environment variable, nullptr without it. The first call of malloc may come before libc knows the
// environment: the stack begins with the count of arguments, the arguments, null, and the environment.
inline const char* variable_of_environment(std::string_view name) noexcept {
  char* const* all = environ;
  if (all == nullptr) {
    if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return nullptr;
    auto* const words = static_cast<char**>(__libc_stack_end);
    all = words + reinterpret_cast<std::intptr_t>(words[0]) + 2;
  }
  for (; *all != nullptr; ++all) {
    const std::string_view line(*all);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == '=') return *all + name.size() + 1;
  }
  return nullptr;
}

inline std::uint64_t number_of(const char* variable, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
  const char* const text = variable_of_environment(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string_view all(text);
  std::uint64_t value = 0;
  const auto end = std::from_chars(all.data(), all.data() + all.size(), value);
  LOAM_CHECK(end.ptr == all.data() + all.size() && end.ec == std::errc{} && value >= least && value <= most,
             "{}={}: must be an integer from {} to {}", variable, all, least, most);
  return value;
}

template <std::size_t kCount>
std::size_t choice_of(const char* variable, const std::string_view (&names)[kCount]) {
  const char* const text = variable_of_environment(variable);
  if (text == nullptr || *text == '\0') return 0;
  for (std::size_t i = 0; i < kCount; ++i)
    if (names[i] == text) return i;
  LOAM_FATAL("{}={}: must be {} or {}", variable, std::string_view(text), names[0], names[kCount - 1]);
}

}  // namespace loam::design
