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
#include <utility>
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

// Nothing is serialised after aborts: a test that stops a thread inside an attempt would wait for it for ever.
inline constexpr Configured kConfigurations[] = {
    {"table", {.serialise_after = 0}},
    // Few records: stripes alias, so chains of several stripes on one record are common.
    {"small_table", {.shift = 4, .records_log2 = 10, .serialise_after = 0}},
    {"shadow", {.mapping = tm::Mapping::shadow, .serialise_after = 0}},
    {"table_blame", {.blame = true, .serialise_after = 0}},
    {"small_table_blame", {.shift = 4, .records_log2 = 10, .blame = true, .serialise_after = 0}},
    {"shadow_blame", {.mapping = tm::Mapping::shadow, .blame = true, .serialise_after = 0}},
};

// Every algorithm that runs `threads` threads over the named configurations, or all. One that lets a single attempt in
// at a time knows no mapping: it is run with one configuration without and one with blame.
inline std::vector<Variant> variants_for(unsigned threads,
                                         std::initializer_list<std::string_view> configurations = {}) {
  const char* const only = std::getenv("LOAM_ALGORITHM");
  std::vector<Variant> all;
  for (const tm::AlgorithmDescription& algorithm : tm::Algorithms::kDescriptions) {
    if ((only != nullptr && algorithm.name != only) || algorithm.threads_max < threads) continue;
    bool seen[2] = {};
    for (const Configured& each : kConfigurations) {
      if (configurations.size() != 0 &&
          std::find(configurations.begin(), configurations.end(), each.name) == configurations.end())
        continue;
      if (!algorithm.overlaps && std::exchange(seen[each.config.blame], true)) continue;
      all.push_back({algorithm.name, each.name, each.config});
    }
  }
  return all;
}

inline const tm::AlgorithmDescription& description_of(const Variant& variant) {
  return *std::find_if(tm::Algorithms::kDescriptions.begin(), tm::Algorithms::kDescriptions.end(),
                       [&](const auto& each) { return each.name == variant.algorithm; });
}

// Those whose attempts overlap: what tests need that run one transaction in the middle of another.
inline std::vector<Variant> variants(std::initializer_list<std::string_view> configurations = {}) {
  std::vector<Variant> all = variants_for(2, configurations);
  std::erase_if(all, [](const Variant& variant) { return !description_of(variant).overlaps; });
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
