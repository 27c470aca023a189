// The sets of keys that workloads choose by name. Each is one file of structures/sets/; the build finds it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace loam::structures {

struct SetDescription {
  std::string_view name;   // what is typed
  std::string_view label;  // what reports call it
};

// S: the structs of structures/sets/. S::Set<HashFunction> is the class itself; one without hashing ignores the function.
template <class... S>
struct SetList {
  static constexpr std::array<std::string_view, sizeof...(S)> kNames{S::kDescription.name...};
  static constexpr std::array<std::string_view, sizeof...(S)> kLabels{S::kDescription.label...};

  // The place of a name among them, kNames.size() if there is none.
  static constexpr std::size_t place(std::string_view name) noexcept {
    std::size_t found = 0;
    while (found < kNames.size() && kNames[found] != name) ++found;
    return found;
  }

  // Calls visit.template operator()<S>() for the one of that name; returns what it returns, false if there is none.
  template <class Visit>
  static bool visit(std::string_view name, Visit&& visit) {
    bool result = false;
    static_cast<void>(((S::kDescription.name == name && (result = visit.template operator()<S>(), true)) || ...));
    return result;
  }
};

}  // namespace loam::structures
