#include "runtime/malloc/settings.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/malloc/message.hpp"

#include <sys/auxv.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace loam::malloc {
namespace {

constexpr std::string_view kPrefix = "LOAM_MALLOC_";

struct Known {
  std::string_view name;  // behind the prefix
  bool Settings::* value;
};
constexpr Known kKnown[] = {
    {"HARDENED", &Settings::hardened},
    {"STATS", &Settings::statistics_at_exit},
};

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

constinit std::atomic<std::uint8_t> read_once{0};

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
    } else if (value != "0" && value != "1") {
      tell("loam malloc: {}{}={}: must be 0 or 1; ignored\n", kPrefix, name, value);
    } else if (!seen[at]) {  // as getenv(): the first of two counts
      seen[at] = true;
      found.*kKnown[at].value = value == "1";
    }
  }
  return found;
}

Settings settings() noexcept {
  // relaxed: the byte is all there is; who finds it empty reads the same environment.
  std::uint8_t now = read_once.load(std::memory_order_relaxed);
  if (now == 0) [[unlikely]] {
    const Settings found = has_more_rights_than_its_user() ? Settings{} : read_settings(environment(), nullptr);
    now = static_cast<std::uint8_t>(kRead | (found.statistics_at_exit ? kStatistics : 0) |
                                    (found.hardened ? kHardened : 0));
    read_once.store(now, std::memory_order_relaxed);
  }
  return {.statistics_at_exit = (now & kStatistics) != 0, .hardened = (now & kHardened) != 0};
}

void complain_about_settings() noexcept {
  if (!has_more_rights_than_its_user()) read_settings(environment(), complain);
}

}  // namespace loam::malloc
