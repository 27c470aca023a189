// A small formatter into a caller's buffer: no allocation, no locale, async-signal-safe.
//   format_to(buffer, "S1: used={} capacity={}", used, capacity)
// Each {} takes the next value: integers, bool, characters, strings, pointers (hexadecimal), floating point (%.17g-like
// shortest round-trip form). Text that does not fit is cut; missing values leave the {} in place.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace loam::base {

class TextWriter {
 public:
  explicit constexpr TextWriter(std::span<char> buffer) noexcept : buffer_(buffer) {}

  constexpr void put(char c) noexcept {
    if (used_ < buffer_.size()) buffer_[used_++] = c;
  }
  constexpr void put(std::string_view text) noexcept {
    for (char c : text) put(c);
  }

  template <class Value>
  void value(const Value& v) noexcept {
    if constexpr (std::is_same_v<Value, bool>) {
      put(v ? std::string_view("true") : std::string_view("false"));
    } else if constexpr (std::is_same_v<Value, char>) {
      put(v);
    } else if constexpr (std::is_enum_v<Value>) {
      value(static_cast<std::underlying_type_t<Value>>(v));
    } else if constexpr (std::integral<Value> || std::floating_point<Value>) {
      char digits[40];
      const auto end = std::to_chars(digits, digits + sizeof digits, v);
      put(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
    } else if constexpr (std::convertible_to<const Value&, std::string_view>) {
      put(std::string_view(v));
    } else {
      static_assert(std::is_pointer_v<Value>, "format_to: no text form for this type");
      char digits[20];
      const auto end = std::to_chars(digits, digits + sizeof digits, reinterpret_cast<std::uintptr_t>(v), 16);
      put("0x");
      put(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
    }
  }

  constexpr std::string_view text() const noexcept { return {buffer_.data(), used_}; }

 private:
  std::span<char> buffer_;
  std::size_t used_ = 0;
};

// Copies `format` up to the next {} and returns what follows it.
constexpr std::string_view put_until_hole(TextWriter& out, std::string_view format) noexcept {
  const auto hole = format.find("{}");
  out.put(format.substr(0, hole));
  if (hole == std::string_view::npos) return {};
  format.remove_prefix(hole + 2);  // not substr(), which may throw: libloam-malloc has no C++ library to throw with
  return format;
}

template <class... Values>
std::string_view format_to(std::span<char> buffer, std::string_view format, const Values&... values) noexcept {
  TextWriter out(buffer);
  ((format = put_until_hole(out, format), out.value(values)), ...);
  out.put(format);
  return out.text();
}

}  // namespace loam::base
