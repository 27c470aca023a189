// Texts of documents and of the manual: a sentence, repeated while it fits.
//   Two forms, because they log differently. As a string a text never changes: a change makes a new one, and a reader
//   enlists only who refers to it. As an array of characters each access is one of the transaction.
#pragma once

#include "workloads/managed/bench7/context.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

namespace loam::workloads::managed::bench7 {

inline constexpr std::string_view kOldStart = "I am", kNewStart = "This is";
inline constexpr char kCounted = 'I', kExchanged = 'i';

inline std::span<char> chars_of(Text& text) noexcept {
  static_assert(sizeof(gc::Value<char>) == 1);
  return {reinterpret_cast<char*>(&text.at<gc::Value<char>>(0)), text.length()};
}

// "I am the manual for module #1\n"
struct Sentence {
  Sentence(std::string_view subject, Number id) noexcept {
    add("I am the ");
    add(subject);
    add(" #");
    char digits[12];
    std::size_t count = 0;
    for (Number rest = id; rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
    while (count != 0) add({&digits[--count], 1});
    add("\n");
  }
  std::string_view text() const noexcept { return {text_, size_}; }

 private:
  void add(std::string_view part) noexcept {
    std::memcpy(text_ + size_, part.data(), part.size());
    size_ += part.size();
  }
  char text_[64] = {};
  std::size_t size_ = 0;
};
inline Sentence document_sentence(Number id) noexcept { return {"documentation for composite part", id}; }
inline Sentence manual_sentence(Number id) noexcept { return {"manual for module", id}; }

template <class Access>
Text* make_text(Access& tx, const Sentence& sentence, std::size_t room) {
  const std::string_view one = sentence.text();
  const std::size_t times = std::max<std::size_t>(room / one.size(), 1);
  auto* const text = tx.template create_array<Text>(times * one.size());
  char* at = chars_of(*text).data();
  for (std::size_t i = 0; i < times; ++i, at += one.size()) std::memcpy(at, one.data(), one.size());
  return text;
}

template <class Access>
char char_at(const Context<Access>& c, const gc::Local<Text>& text, std::size_t index) {
  return c.settings.arrays ? c.tx.read_at(text, index) : chars_of(*text.get())[index];
}

template <class Access>
std::int64_t count_char(const Context<Access>& c, const gc::Local<Text>& text, char wanted) {
  if (!c.settings.arrays) {
    const auto chars = chars_of(*text.get());
    return std::count(chars.begin(), chars.end(), wanted);
  }
  std::int64_t count = 0;
  for (std::size_t i = 0; i < text->length(); ++i) count += c.tx.read_at(text, i) == wanted ? 1 : 0;
  return count;
}

template <class Access>
bool starts_with(const Context<Access>& c, const gc::Local<Text>& text, std::string_view start) {
  if (text->length() < start.size()) return false;
  for (std::size_t i = 0; i < start.size(); ++i)
    if (char_at(c, text, i) != start[i]) return false;
  return true;
}

// Exchanges the two starts of a document. returns how many documents have changed: 1
template <class Access>
std::int64_t exchange_start(const Context<Access>& c, const gc::Local<Document>& document) {
  const gc::Local<Text> text(c.mutator(), c.tx.read(document, &Document::text));
  const bool is_old = starts_with(c, text, kOldStart);
  const std::string_view before = is_old ? kOldStart : kNewStart, after = is_old ? kNewStart : kOldStart;
  const std::size_t kept = text->length() - before.size();
  gc::Local<Text> changed(c.mutator(), c.tx.template create_array<Text>(after.size() + kept));
  std::memcpy(chars_of(*changed.get()).data(), after.data(), after.size());
  if (c.settings.arrays) {
    for (std::size_t i = 0; i < kept; ++i)
      c.tx.write_at(changed, after.size() + i, c.tx.read_at(text, before.size() + i));
  } else {
    std::memcpy(chars_of(*changed.get()).data() + after.size(), chars_of(*text.get()).data() + before.size(), kept);
  }
  c.tx.write(document, &Document::text, changed);
  return 1;
}

// Replaces every `before`. returns how many
template <class Access>
std::int64_t exchange_char(const Context<Access>& c, const gc::Local<Manual>& manual, char before, char after) {
  const gc::Local<Text> text(c.mutator(), c.tx.read(manual, &Manual::text));
  std::int64_t count = 0;
  if (c.settings.arrays) {
    for (std::size_t i = 0; i < text->length(); ++i) {
      if (c.tx.read_at(text, i) != before) continue;
      c.tx.write_at(text, i, after);
      ++count;
    }
    return count;
  }
  gc::Local<Text> changed(c.mutator(), c.tx.template create_array<Text>(text->length()));
  const auto from = chars_of(*text.get());
  const auto to = chars_of(*changed.get());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool is_one = from[i] == before;
    to[i] = is_one ? after : from[i];
    count += is_one ? 1 : 0;
  }
  c.tx.write(manual, &Manual::text, changed);
  return count;
}

}  // namespace loam::workloads::managed::bench7
