// The forms in which the transactional memory is tested: with and without blame, over each mapping.
#pragma once

#include "runtime/tm/tm.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace loam::tests {

struct Variant {
  const char* name;
  tm::Config config;

  friend std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name; }
};

inline constexpr Variant kVariants[] = {
    {"table", {}},
    // Few records: stripes alias, so chains of several stripes on one record are common.
    {"small_table", {.shift = 4, .records_log2 = 10}},
    {"shadow", {.mapping = tm::Mapping::shadow}},
    {"table_blame", {.blame = true}},
    {"small_table_blame", {.shift = 4, .records_log2 = 10, .blame = true}},
    {"shadow_blame", {.mapping = tm::Mapping::shadow, .blame = true}},
};

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) { return info.param.name; }

// Configures the process for `variant` and runs body.operator()<Driver>().
template <class Body>
void with_variant(const Variant& variant, Body&& body) {
  tm::configure(variant.config);
  if (variant.config.blame)
    body.template operator()<tm::Driver<tm::EtlWb<true>>>();
  else
    body.template operator()<tm::Driver<tm::EtlWb<false>>>();
}

// As above, in a process of its own.
template <class Body>
void in_variant(const Variant& variant, Body&& body) {
  in_child([&] { with_variant(variant, body); });
}

}  // namespace loam::tests
