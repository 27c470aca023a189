// The nearest of some names to a mistyped one, for hints.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace loam::base {

inline constexpr std::size_t kNameMax = 40;  // longer words are compared by their first 40 characters

// Edits (insert, drop, replace) that turn one word into the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) noexcept {
  a = a.substr(0, kNameMax);
  b = b.substr(0, kNameMax);
  std::size_t row[kNameMax + 1];
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The entry whose name is at most a third of its letters (at least two edits) away; empty if none is.
template <class Entries, class NameOf>
std::string_view nearest(std::string_view word, const Entries& entries, NameOf name_of) noexcept {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& entry : entries) {
    const std::string_view name = name_of(entry);
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace loam::base
