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
  // In place of the configuration's: tests commit in another thread while an attempt is stopped, for which `commit`
  // would wait. What waits for older attempts has tests of its own (tests/unit/tm/privatization_test.cpp).
  tm::Privatization privatization = tm::Privatization::none;

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

inline constexpr Configured kConfigurations[] = {
    {"table", {}},
    // Few records: stripes alias, so chains of several stripes on one record are common.
    {"small_table", {.shift = 4, .records_log2 = 10}},
    {"shadow", {.mapping = tm::Mapping::shadow}},
    {"table_blame", {.blame = true}},
    {"small_table_blame", {.shift = 4, .records_log2 = 10, .blame = true}},
    {"shadow_blame", {.mapping = tm::Mapping::shadow, .blame = true}},
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
        all.push_back({.algorithm = algorithm, .mapping = each.name, .config = each.config});
  }
  return all;
}

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) { return info.param.name(); }

// Configures the process for `variant` and runs body.operator()<Driver>().
template <class Body>
void with_variant(const Variant& variant, Body&& body) {
  tm::Config config = variant.config;
  config.privatization = variant.privatization;
  tm::configure(config);
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
