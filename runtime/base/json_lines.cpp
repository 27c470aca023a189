#include "runtime/base/json_lines.hpp"

#include "runtime/base/check.hpp"

#include <unistd.h>
#include <cerrno>

namespace loam::base {

void JsonLine::separate() noexcept {
  if (after_value_) put(',');
  after_value_ = false;
}

JsonLine& JsonLine::open(char bracket) noexcept {
  LOAM_CHECK(depth_ < kDepthMax, "JsonLine: more than {} levels", kDepthMax);
  separate();
  put(bracket);
  brackets_[depth_++] = bracket;
  return *this;
}

JsonLine& JsonLine::end() noexcept {
  LOAM_CHECK(depth_ > 0, "JsonLine: end() without object() or array()");
  put(brackets_[--depth_] == '{' ? '}' : ']');
  after_value_ = true;
  return *this;
}

JsonLine& JsonLine::name(std::string_view key) noexcept {
  separate();
  text(key);
  put(':');
  return *this;
}

void JsonLine::text(std::string_view s) noexcept {
  static constexpr char kHex[] = "0123456789abcdef";
  put('"');
  for (const char c : s) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      put('\\');
      put(c);
    } else if (code < 0x20) {
      put(std::string_view("\\u00"));
      put(kHex[code >> 4]);
      put(kHex[code & 15]);
    } else {
      put(c);
    }
  }
  put('"');
}

bool JsonLine::write_to(int descriptor) noexcept {
  LOAM_CHECK(depth_ == 0, "JsonLine: written with {} open levels", depth_);
  put('\n');
  if (overflown_) {
    errno = EMSGSIZE;
    return false;
  }
  ssize_t written;
  do {
    written = ::write(descriptor, buffer_.data(), used_);
  } while (written < 0 && errno == EINTR);
  if (written >= 0 && static_cast<std::size_t>(written) != used_) {
    errno = ENOSPC;  // a short write to a file: the disk is full
    return false;
  }
  return written >= 0;
}

}  // namespace loam::base
