#include "workloads/harness/parameters.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace loam::workloads {
namespace {

// Formats into a zero-filled field of a Refusal, keeping the final zero.
template <std::size_t n, class... Values>
void say(char (&out)[n], std::string_view format, const Values&... values) noexcept {
  base::format_to(std::span<char>(out, n - 1), format, values...);
}

// "list, hash, tree" into `out`.
template <class Names, class NameOf>
std::string_view join(std::span<char> out, const Names& names, NameOf name_of) noexcept {
  base::TextWriter text(out);
  bool first = true;
  for (const auto& entry : names) {
    if (!first) text.put(", ");
    text.put(std::string_view(name_of(entry)));
    first = false;
  }
  return text.text();
}

bool is_readable_file(std::string_view path, Refusal& refusal) noexcept {
  if (path.empty()) {
    say(refusal.limit, "must be the path of a file");
    return false;
  }
  const int descriptor = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    say(refusal.limit, "cannot be read: {}", std::strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    say(refusal.limit, "is no regular file");
  }
  if (descriptor >= 0) ::close(descriptor);
  return refusal.limit[0] == '\0';
}

}  // namespace

void ParameterValues::add(std::span<const ParameterSpec> specs) noexcept {
  for (const auto& spec : specs) {
    LOAM_CHECK(count_ < kItemsMax, "more than {} parameters", kItemsMax);
    for (const auto& item : items())
      LOAM_CHECK(item.spec->name != spec.name, "parameter {} is described twice", spec.name);
    items_[count_++] = {&spec, spec.fallback};
  }
}

bool ParameterValues::set(std::string_view name, std::string_view text, Refusal& refusal) noexcept {
  char list[200];
  const auto name_of_item = [](const Item& item) { return item.spec->name; };
  for (auto& item : std::span(items_).first(count_)) {
    const auto& spec = *item.spec;
    if (spec.name != name) continue;
    if (spec.type == ParameterSpec::Type::choice) {
      for (std::size_t i = 0; i < spec.choices.size(); ++i)
        if (spec.choices[i] == text) {
          item.value = static_cast<std::int64_t>(i);
          return true;
        }
      const auto self = [](std::string_view choice) { return choice; };
      say(refusal.limit, "must be one of {}", join(list, spec.choices, self));
      const auto near = base::nearest(text, spec.choices, self);
      if (!near.empty()) say(refusal.hint, "did you mean {}?", near);
      return false;
    }
    if (spec.type == ParameterSpec::Type::file) {
      if (!is_readable_file(text, refusal)) return false;
      item.path = text;
      return true;
    }
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < spec.min ||
        value > spec.max) {
      say(refusal.limit, "must be an integer from {} to {}", spec.min, spec.max);
      say(refusal.hint, "default {}{}{}", spec.fallback, spec.unit.empty() ? "" : " ", spec.unit);
      return false;
    }
    item.value = value;
    return true;
  }
  say(refusal.limit, "no such parameter; known: {}", join(list, items(), name_of_item));
  const auto near = base::nearest(name, items(), name_of_item);
  if (!near.empty()) say(refusal.hint, "did you mean {}?", near);
  return false;
}

const ParameterValues::Item& ParameterValues::at(std::string_view name) const noexcept {
  for (const auto& item : items())
    if (item.spec->name == name) return item;
  LOAM_FATAL("parameter {} is not described", name);
}

std::string_view ParameterValues::choice(std::string_view name) const noexcept {
  const auto& item = at(name);
  return item.spec->choices[static_cast<std::size_t>(item.value)];
}

}  // namespace loam::workloads
