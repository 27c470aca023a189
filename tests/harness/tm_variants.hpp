// The forms in which the transactional memory is tested: every algorithm, with and without blame, over each mapping.
//   LOAM_ALGORITHM=NAME   only that one
#pragma once

#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace loam::tests {

struct Variant {
  std::string_view algorithm;
  std::string_view mapping;  // and with it the rest of the configuration
  tm::Config config;

  std::string name() const {
    std::string text(algorithm);
    for (char& c : text)
      if (c == '-') c = '_';
    return text + "_" + std::string(mapping);
  }
  friend std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name(); }
};

struct Configured {
  std::string_view name;
  tm::Config config;
};

// privatization none: tests commit in another thread while an attempt is stopped, which under `commit` waits for it.
// What waits for older attempts has tests of its own (tests/unit/tm/privatization_test.cpp).
inline constexpr tm::Privatization kNone = tm::Privatization::none;
inline constexpr Configured kConfigurations[] = {
    {"table", {.privatization = kNone}},
    // Few records: stripes alias, so chains of several stripes on one record are common.
    {"small_table", {.shift = 4, .records_log2 = 10, .privatization = kNone}},
    {"shadow", {.mapping = tm::Mapping::shadow, .privatization = kNone}},
    {"table_blame", {.blame = true, .privatization = kNone}},
    {"small_table_blame", {.shift = 4, .records_log2 = 10, .blame = true, .privatization = kNone}},
    {"shadow_blame", {.mapping = tm::Mapping::shadow, .blame = true, .privatization = kNone}},
};

// Every algorithm over the named configurations, or all.
inline std::vector<Variant> variants(std::initializer_list<std::string_view> configurations = {}) {
  const char* const only = std::getenv("LOAM_ALGORITHM");
  std::vector<Variant> all;
  for (const std::string_view algorithm : tm::Algorithms::kNames) {
    if (only != nullptr && algorithm != only) continue;
    for (const Configured& each : kConfigurations)
      if (configurations.size() == 0 ||
          std::find(configurations.begin(), configurations.end(), each.name) != configurations.end())
        all.push_back({algorithm, each.name, each.config});
  }
  return all;
}

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) { return info.param.name(); }

// Configures the process for `variant` and runs body.operator()<Driver>().
template <class Body>
void with_variant(const Variant& variant, Body&& body) {
  tm::configure(variant.config);
  const auto run = [&]<class Algorithm>() { body.template operator()<tm::Driver<Algorithm>>(); };
  const bool found = variant.config.blame ? tm::Algorithms::with<true>(variant.algorithm, run)
                                          : tm::Algorithms::with<false>(variant.algorithm, run);
  ASSERT_TRUE(found) << variant.algorithm;
}

// As above, in a process of its own.
template <class Body>
void in_variant(const Variant& variant, Body&& body) {
  in_child([&] { with_variant(variant, body); });
}

}  // namespace loam::tests
