#include "runtime/malloc/settings.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/malloc/message.hpp"

#include <sys/auxv.h>
#include <unistd.h>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>

namespace loam::malloc {
namespace {

constexpr std::string_view kPrefix = "LOAM_MALLOC_", kBare = "LOAM_MALLOC=";

struct Known {
  std::string_view name;  // behind the prefix
  bool Settings::* flag;
  std::uint32_t Settings::* number = nullptr;  // where it is no flag
  const char* Settings::* text = nullptr;      // of at least one character
};
constexpr Known kKnown[] = {
    {"APART", nullptr, nullptr, &Settings::apart_file},
    {"BACKGROUND", &Settings::background},
    {"HARDENED", &Settings::hardened},
    {"GUARD_MS", nullptr, &Settings::guard_ms},
    {"STATS", &Settings::statistics_at_exit},
};
constexpr std::uint32_t kNumberMax = 3'600'000;

// returns false where it is no value of the setting
bool set(Settings& settings, const Known& known, std::string_view value) noexcept {
  if (known.text != nullptr) {
    settings.*known.text = value.data();  // the variable's end is the value's
    return !value.empty();
  }
  if (known.number == nullptr) {
    settings.*known.flag = value == "1";
    return value == "0" || value == "1";
  }
  std::uint32_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  settings.*known.number = number;
  return read.ec == std::errc{} && read.ptr == value.data() + value.size() && number <= kNumberMax;
}

char* const* environment() noexcept {
  if (environ != nullptr) return environ;
  // Before libc's own start: the stack begins with the count of arguments, the arguments, null, the environment.
  static constexpr char* const kNothing[] = {nullptr};
  if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return kNothing;
  auto* const words = static_cast<char**>(__libc_stack_end);
  return words + reinterpret_cast<std::intptr_t>(words[0]) + 2;
}

bool has_more_rights_than_its_user() noexcept { return getauxval(AT_SECURE) != 0; }

void complain(const char* line, std::size_t length) noexcept { say(STDERR_FILENO, {line, length}); }

}  // namespace

constinit std::atomic<std::uint64_t> read_once{0};

Settings read_settings(char* const* variables, void (*complaint)(const char* line, std::size_t length)) noexcept {
  Settings found;
  bool seen[std::size(kKnown)] = {};
  const auto tell = [&](std::string_view format, auto... values) {
    if (complaint == nullptr) return;
    char buffer[256];
    const auto line = base::format_to(buffer, format, values...);
    complaint(line.data(), line.size());
  };
  for (; *variables != nullptr; ++variables) {
    std::string_view variable = *variables;
    if (variable.starts_with(kBare)) {
      tell("loam malloc: LOAM_MALLOC: there is no such setting; ignored. Settings have longer names, as {}{}\n",
           kPrefix, kKnown[2].name);
      continue;
    }
    if (!variable.starts_with(kPrefix)) continue;
    variable.remove_prefix(kPrefix.size());
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name(variable.data(), equals);
    const std::string_view value(variable.data() + equals + 1, variable.size() - equals - 1);
    std::size_t at = 0;
    while (at < std::size(kKnown) && kKnown[at].name != name) ++at;
    if (at == std::size(kKnown)) {
      const auto near = base::nearest(name, kKnown, [](const Known& known) { return known.name; });
      if (near.empty())
        tell("loam malloc: {}{}: there is no such setting; ignored\n", kPrefix, name);
      else
        tell("loam malloc: {}{}: there is no such setting; did you mean {}{}? Ignored\n", kPrefix, name, kPrefix, near);
    } else if (Settings one; !set(one, kKnown[at], value)) {
      if (kKnown[at].text != nullptr)
        tell("loam malloc: {}{}=: must name a file; ignored\n", kPrefix, name);
      else if (kKnown[at].number == nullptr)
        tell("loam malloc: {}{}={}: must be 0 or 1; ignored\n", kPrefix, name, value);
      else
        tell("loam malloc: {}{}={}: must be a whole number from 0 to {}; ignored\n", kPrefix, name, value, kNumberMax);
    } else if (!seen[at]) {  // as getenv(): the first of two counts
      seen[at] = true;
      set(found, kKnown[at], value);
    }
  }
  found.apart = found.apart_file != nullptr && !found.hardened && found.guard_ms == 0;
  if (found.apart_file != nullptr && !found.apart)
    tell(
        "loam malloc: LOAM_MALLOC_APART: has no effect beside LOAM_MALLOC_HARDENED or LOAM_MALLOC_GUARD_MS; ignored\n");
  return found;
}

Settings settings() noexcept {
  // relaxed: the word is all there is; who finds it empty reads the same environment.
  std::uint64_t now = read_once.load(std::memory_order_relaxed);
  if (now == 0) [[unlikely]] {
    const Settings found = has_more_rights_than_its_user() ? Settings{} : read_settings(environment(), nullptr);
    now = kRead | (found.statistics_at_exit ? kStatistics : 0) | (found.hardened ? kHardened : 0) |
          (found.background ? kBackground : 0) | (found.apart ? kApart : 0) |
          std::uint64_t{found.guard_ms} << kGuardShift;
    read_once.store(now, std::memory_order_relaxed);
  }
  return {.statistics_at_exit = (now & kStatistics) != 0,
          .hardened = (now & kHardened) != 0,
          .background = (now & kBackground) != 0,
          .guard_ms = static_cast<std::uint32_t>(now >> kGuardShift),
          .apart = (now & kApart) != 0};
}

const char* apart_file() noexcept {
  return has_more_rights_than_its_user() ? nullptr : read_settings(environment(), nullptr).apart_file;
}

void complain_about_settings() noexcept {
  if (!has_more_rights_than_its_user()) read_settings(environment(), complain);
}

}  // namespace loam::malloc
