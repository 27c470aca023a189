#include "runtime/malloc/apart_sites.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace loam::malloc {
namespace {

constexpr std::string_view kTitle = "loam-apart 1";

// Cuts off what stands before the first `mark`. (substr() could throw.)
std::string_view cut(std::string_view& rest, std::string_view mark) noexcept {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view first(rest.data(), end);
  rest.remove_prefix(std::min(end + mark.size(), rest.size()));
  return first;
}
std::string_view word(std::string_view& rest) noexcept { return cut(rest, " "); }

bool number(std::string_view text, int base, std::uint64_t& value) noexcept {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

bool is_hexadecimal(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789abcdef") == text.npos && text.size() >= 2 && text.size() % 2 == 0;
}

}  // namespace

ApartSites::Problem ApartSites::parse(std::string_view text) noexcept {
  unsigned line_number = 0;
  const char* wrong = nullptr;
  while (!text.empty() && wrong == nullptr) {
    const std::string_view line = cut(text, "\n");
    if (++line_number == 1) {
      if (line != kTitle) wrong = "must be 'loam-apart 1': the file is none of these, or of another version";
      continue;
    }
    std::string_view comment = line, rest = cut(comment, " #");
    if (rest.empty() || rest.front() == '#') continue;
    const std::string_view kind = word(rest);
    if (kind == "program")
      program_ = rest;
    else if (kind == "module")
      wrong = take_module(rest);
    else if (kind == "site")
      wrong = take_site(line, rest);
    else
      wrong = "must begin with program, module or site";
  }
  if (line_number == 0) wrong = "is missing: the file is empty", line_number = 1;
  if (wrong == nullptr) return {};
  module_count_ = site_count_ = 0;
  heads_.fill(0);
  needs_stacks_ = false;
  return {line_number, wrong};
}

const char* ApartSites::take_module(std::string_view rest) noexcept {
  if (module_count_ == kModules) return "is one module too many: 64 at most";
  Module& module = modules_[module_count_];
  const std::string_view how = word(rest);
  if (how == "build-id") {
    module.build_id = word(rest);
    if (!is_hexadecimal(module.build_id)) return "must have a build ID in hexadecimal digits";
  } else if (how == "file") {
    const std::string_view bytes = word(rest), changed = word(rest);
    if (!number(bytes, 10, module.bytes) || !number(changed, 10, module.changed_ns))
      return "must have the file's size and time of change as whole numbers";
  } else {
    return "must be known by build-id or file";
  }
  module.path = rest;
  if (!module.path.starts_with('/')) return "must end with an absolute path";
  ++module_count_;
  return nullptr;
}

const char* ApartSites::take_site(std::string_view line, std::string_view rest) noexcept {
  if (site_count_ == kSites) return "is one site too many: 512 at most";
  Site& site = sites_[site_count_];
  const std::size_t first = frame_count_;
  while (!rest.empty()) {
    std::string_view address = word(rest);
    const std::string_view of = cut(address, "+");
    std::uint64_t module = 0, offset = 0;
    if (!number(of, 10, module) || !number(address, 16, offset))
      return "must have frames such as 0+11d3: number of a module, address in hexadecimal digits";
    if (module >= module_count_) return "names a module that no line before has";
    if (frame_count_ == kFrames || frame_count_ - first == kDepth) return "has one frame too many: 16 at most";
    frames_[frame_count_++] = {offset, static_cast<std::uint16_t>(module)};
  }
  if (frame_count_ == first) return "must have a frame";
  site.line = line;
  site.first = static_cast<std::uint16_t>(first);
  site.depth = static_cast<std::uint16_t>(frame_count_ - first);
  std::uint16_t& head = heads_[frames_[first].offset % kHeads];
  site.next = head;
  head = static_cast<std::uint16_t>(++site_count_);
  needs_stacks_ = needs_stacks_ || site.depth > 1;
  return nullptr;
}

bool ApartSites::is_id(std::string_view digits, std::span<const std::uint8_t> bytes) noexcept {
  if (digits.size() != 2 * bytes.size()) return false;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (digits[2 * i] != kDigits[bytes[i] >> 4] || digits[2 * i + 1] != kDigits[bytes[i] & 15]) return false;
  return true;
}

}  // namespace loam::malloc
