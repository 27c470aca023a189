// A JSON reader and a validator for the part of JSON Schema 2020-12 that schema/record.schema.json uses.
// For tests only: small and strict, no speed. Errors are std::runtime_error with the place.
#pragma once

#include <regex.h>
#include <cctype>
#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loam::tests {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;

  static Json parse(std::string_view text) {
    std::size_t at = 0;
    Json value = read(text, at);
    skip(text, at);
    if (at != text.size()) fail(text, at, "text after the value");
    return value;
  }

  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_number() const { return std::holds_alternative<double>(value_); }
  bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_integer() const { return is_number() && number() == static_cast<double>(static_cast<long long>(number())); }

  const Object& object() const { return std::get<Object>(value_); }
  const Array& array() const { return std::get<Array>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  double number() const { return std::get<double>(value_); }
  bool boolean() const { return std::get<bool>(value_); }

  bool has(std::string_view key) const { return is_object() && object().find(key) != object().end(); }
  const Json& operator[](std::string_view key) const {
    const auto found = object().find(key);
    if (found == object().end()) throw std::runtime_error("JSON: no key " + std::string(key));
    return found->second;
  }
  bool operator==(const Json&) const = default;

 private:
  [[noreturn]] static void fail(std::string_view text, std::size_t at, std::string_view what) {
    throw std::runtime_error("JSON: " + std::string(what) + " at " + std::to_string(at) + " near \"" +
                             std::string(text.substr(at, 30)) + "\"");
  }
  static void skip(std::string_view text, std::size_t& at) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  }
  static void expect(std::string_view text, std::size_t& at, char c) {
    skip(text, at);
    if (at >= text.size() || text[at] != c) fail(text, at, std::string("expected ") + c);
    ++at;
  }
  static bool accept(std::string_view text, std::size_t& at, char c) {
    skip(text, at);
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }

  static std::string read_string(std::string_view text, std::size_t& at) {
    expect(text, at, '"');
    std::string out;
    for (;;) {
      if (at >= text.size() || static_cast<unsigned char>(text[at]) < 0x20) fail(text, at, "string not ended");
      char c = text[at++];
      if (c == '"') return out;
      if (c == '\\') {
        c = text.at(at++);
        if (c == 'u') {
          unsigned code = 0;
          std::from_chars(text.data() + at, text.data() + at + 4, code, 16);
          at += 4;
          if (code > 0x7f) fail(text, at, "only ASCII escapes are written");
          c = static_cast<char>(code);
        } else if (c == 'n') {
          c = '\n';
        } else if (c != '"' && c != '\\' && c != '/') {
          fail(text, at, "unknown escape");
        }
      }
      out += c;
    }
  }

  static Json read(std::string_view text, std::size_t& at) {
    skip(text, at);
    if (at >= text.size()) fail(text, at, "no value");
    Json out;
    if (text[at] == '{') {
      ++at;
      Object object;
      if (!accept(text, at, '}')) {
        do {
          skip(text, at);
          std::string key = read_string(text, at);
          expect(text, at, ':');
          if (!object.emplace(std::move(key), read(text, at)).second) fail(text, at, "key twice");
        } while (accept(text, at, ','));
        expect(text, at, '}');
      }
      out.value_ = std::move(object);
    } else if (text[at] == '[') {
      ++at;
      Array array;
      if (!accept(text, at, ']')) {
        do array.push_back(read(text, at));
        while (accept(text, at, ','));
        expect(text, at, ']');
      }
      out.value_ = std::move(array);
    } else if (text[at] == '"') {
      out.value_ = read_string(text, at);
    } else if (text.substr(at, 4) == "true") {
      at += 4;
      out.value_ = true;
    } else if (text.substr(at, 5) == "false") {
      at += 5;
      out.value_ = false;
    } else if (text.substr(at, 4) == "null") {
      at += 4;
    } else {
      double number = 0;
      const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (parsed.ec != std::errc{}) fail(text, at, "no value");
      at = static_cast<std::size_t>(parsed.ptr - text.data());
      out.value_ = number;
    }
    return out;
  }

  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_ = nullptr;
};

class Schema {
 public:
  explicit Schema(Json root) : root_(std::move(root)) {}

  // The first violation as "place: what"; empty if `value` is valid. start: "" for the whole schema, or a name in
  // $defs.
  std::string violation(const Json& value, std::string_view start = "") const {
    return check(start.empty() ? root_ : root_["$defs"][start], value, "$");
  }

 private:
  // libc's expressions: GCC 12 warns inside std::regex under the address sanitizer.
  static bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled;
    if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
      throw std::runtime_error("schema: bad pattern " + pattern);
    const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    ::regfree(&compiled);
    return found;
  }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    throw std::runtime_error("schema: unknown type " + type);
  }

  std::string check(const Json& schema, const Json& value, const std::string& place) const {
    for (const auto& [keyword, rule] : schema.object()) {
      std::string found = check_keyword(schema, keyword, rule, value, place);
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string check_keyword(const Json& schema, const std::string& keyword, const Json& rule, const Json& value,
                            const std::string& place) const {
    const auto wrong = [&] { return place + ": " + keyword; };
    const auto require = [&](bool holds) { return holds ? std::string{} : wrong(); };
    if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "$defs") return {};
    if (keyword == "$ref") {
      constexpr std::string_view kPrefix = "#/$defs/";
      return check(root_["$defs"][rule.string().substr(kPrefix.size())], value, place);
    }
    if (keyword == "type") {
      if (rule.is_string()) return require(has_type(value, rule.string()));
      for (const auto& type : rule.array())
        if (has_type(value, type.string())) return {};
      return wrong();
    }
    if (keyword == "const") return require(value == rule);
    if (keyword == "enum") {
      for (const auto& permitted : rule.array())
        if (value == permitted) return {};
      return wrong();
    }
    if (keyword == "minimum") return require(!value.is_number() || value.number() >= rule.number());
    if (keyword == "maximum") return require(!value.is_number() || value.number() <= rule.number());
    if (keyword == "minLength")
      return require(!value.is_string() || static_cast<double>(value.string().size()) >= rule.number());
    if (keyword == "pattern") return require(!value.is_string() || matches(value.string(), rule.string()));
    if (keyword == "minItems")
      return require(!value.is_array() || static_cast<double>(value.array().size()) >= rule.number());
    if (keyword == "maxItems")
      return require(!value.is_array() || static_cast<double>(value.array().size()) <= rule.number());
    if (keyword == "required") {
      for (const auto& key : rule.array())
        if (value.is_object() && !value.has(key.string())) return place + ": lacks " + key.string();
      return {};
    }
    if (keyword == "properties") {
      if (!value.is_object()) return {};
      for (const auto& [key, inner] : rule.object())
        if (value.has(key))
          if (auto found = check(inner, value[key], place + "." + key); !found.empty()) return found;
      return {};
    }
    if (keyword == "additionalProperties") {
      if (!value.is_object()) return {};
      for (const auto& [key, inner] : value.object()) {
        if (schema.has("properties") && schema["properties"].has(key)) continue;
        if (rule.is_boolean()) {
          if (!rule.boolean()) return place + ": unknown key " + key;
        } else if (auto found = check(rule, inner, place + "." + key); !found.empty()) {
          return found;
        }
      }
      return {};
    }
    if (keyword == "items") {
      if (!value.is_array()) return {};
      for (std::size_t i = 0; i < value.array().size(); ++i)
        if (auto found = check(rule, value.array()[i], place + "[" + std::to_string(i) + "]"); !found.empty())
          return found;
      return {};
    }
    if (keyword == "oneOf") {
      int matches = 0;
      std::string last;
      for (const auto& inner : rule.array()) {
        const auto found = check(inner, value, place);
        matches += found.empty() ? 1 : 0;
        if (!found.empty()) last += " | " + found;
      }
      return matches == 1 ? std::string{} : place + ": matches " + std::to_string(matches) + " of oneOf" + last;
    }
    throw std::runtime_error("schema: keyword " + keyword + " is not implemented here");
  }

  Json root_;
};

}  // namespace loam::tests
