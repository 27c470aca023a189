// One JSON value per line, built in a caller's buffer and handed to the kernel with one write(2).
//   char buffer[4096];
//   JsonLine line(buffer);
//   line.object().field("kind", "end").field("verified", true).end();
//   line.write_to(descriptor);
// No allocation and no standard I/O: both would call the allocator under test. One write per line: concurrent writers
// do not mix, and a kill leaves whole lines.
// Numbers are written in the shortest form that reads back exactly; NaN and infinities, which JSON lacks, as null.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace loam::base {

class JsonLine {
 public:
  // J1 a value that does not fit marks the line as overflown; write_to() then refuses it.
  explicit JsonLine(std::span<char> buffer) noexcept : buffer_(buffer) {}

  JsonLine& object() noexcept { return open('{'); }
  JsonLine& object(std::string_view key) noexcept { return name(key).open('{'); }
  JsonLine& array() noexcept { return open('['); }
  JsonLine& array(std::string_view key) noexcept { return name(key).open('['); }
  JsonLine& end() noexcept;  // closes the innermost object or array

  template <class Value>
  JsonLine& field(std::string_view key, const Value& v) noexcept {
    return name(key).value(v);
  }

  template <class Value>
  JsonLine& value(const Value& v) noexcept {
    separate();
    if constexpr (std::is_same_v<Value, bool>) {
      put(v ? std::string_view("true") : std::string_view("false"));
    } else if constexpr (std::floating_point<Value>) {
      if (std::isfinite(v)) {
        number(v);
      } else {
        put(std::string_view("null"));
      }
    } else if constexpr (std::integral<Value>) {
      number(v);
    } else {
      text(std::string_view(v));
    }
    after_value_ = true;
    return *this;
  }

  bool overflown() const noexcept { return overflown_; }
  std::string_view view() const noexcept { return {buffer_.data(), used_}; }

  // Adds the newline and writes the line. False if it did not fit (J1) or the descriptor did not take it; errno tells.
  bool write_to(int descriptor) noexcept;

 private:
  static constexpr unsigned kDepthMax = 16;

  JsonLine& name(std::string_view key) noexcept;
  JsonLine& open(char bracket) noexcept;
  void separate() noexcept;
  void text(std::string_view s) noexcept;

  template <class Number>
  void number(Number v) noexcept {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, v);
    put(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
  }
  void put(char c) noexcept {
    if (used_ < buffer_.size()) {
      buffer_[used_++] = c;
    } else {
      overflown_ = true;
    }
  }
  void put(std::string_view s) noexcept {
    for (char c : s) put(c);
  }

  std::span<char> buffer_;
  std::size_t used_ = 0;
  char brackets_[kDepthMax] = {};
  unsigned depth_ = 0;
  bool after_value_ = false;  // a comma is due before the next value or key
  bool overflown_ = false;
};

}  // namespace loam::base
