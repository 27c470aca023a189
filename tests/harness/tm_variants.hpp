// The forms in which the transactional memory is tested: every algorithm, with and without blame, over each mapping.
//   LOAM_ALGORITHM=NAME   only that one
#pragma once

#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/attempts/switching.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/erased_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace loam::tests {

// Whether an algorithm is another one with records that are found by a hash.
template <class Algorithm>
inline constexpr bool kIsOfTheHash = tm::uses_records<Algorithm>() && tm::knows_hash<Algorithm>();

// A test is compiled for each algorithm, which is most of the time that tests take. LOAM_TEST_ALGORITHMS names fewer
// (the sanitizers' builds, and mutants, of which each concerns one); LOAM_TEST_BLAME those to be compiled with blame.
// One that is another's with a hash differs from it by the formula of its records alone: those tests see it that define
// LOAM_TEST_HASH.
#ifdef LOAM_TEST_ALGORITHMS
using Tested = tm::AlgorithmList<LOAM_TEST_ALGORITHMS>;
#elif defined(LOAM_TEST_HASH)
using Tested = tm::Algorithms;
#else
template <class Kept, template <bool> class... Rest>
struct WithoutHashOf {
  using type = Kept;
};
template <template <bool> class... Kept, template <bool> class First, template <bool> class... Rest>
struct WithoutHashOf<tm::AlgorithmList<Kept...>, First, Rest...>
    : std::conditional_t<kIsOfTheHash<First<false>>, WithoutHashOf<tm::AlgorithmList<Kept...>, Rest...>,
                         WithoutHashOf<tm::AlgorithmList<Kept..., First>, Rest...>> {};
template <template <bool> class... All>
auto without_hash(tm::AlgorithmList<All...>) -> typename WithoutHashOf<tm::AlgorithmList<>, All...>::type;
using Tested = decltype(without_hash(tm::Algorithms{}));
#endif
#ifndef LOAM_TEST_BLAME
#define LOAM_TEST_BLAME tm::EtlWb
#endif
using TestedWithBlame = tm::AlgorithmList<LOAM_TEST_BLAME>;

// What the body of a test gets. Where the accesses are meant to be inlined into it, LOAM_TEST_DIRECT is defined.
#ifdef LOAM_TEST_DIRECT
template <tm::Algorithm A>
using DriverOf = tm::Driver<A>;
#else
template <tm::Algorithm A>
using DriverOf = ErasedDriver<A>;
#endif

struct Variant {
  std::string_view algorithm;
  std::string_view mapping;  // and with it the rest of the configuration
  tm::Config config;
  // In place of the configuration's: tests commit in another thread while an attempt is stopped, for which `commit`
  // would wait. What waits for older attempts has tests of its own (tests/unit/tm/attempts/privatization_test.cpp).
  tm::Privatization privatization = tm::Privatization::none;
  // Under an algorithm that switches: which of its two runs, all the time. By itself the one that has the properties which
  // the algorithm tells (records and so on). Changes have tests of their own (tests/unit/tm/algorithms/switching_test.cpp).
  tm::switching::Runs runs = tm::switching::Runs::judged;

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
constexpr tm::Config patient(tm::Config config) noexcept {
  config.serialise_after = 0;
  return config;
}
inline constexpr Configured kConfigurations[] = {
    {"table", patient({})},
    // Few records: stripes alias, so chains of several stripes on one record are common.
    {"small_table", patient({.shift = 4, .records_log2 = 10})},
    {"shadow", patient({.mapping = tm::Mapping::shadow})},
    {"small_hash", patient({.mapping = tm::Mapping::hash, .shift = 4, .records_log2 = 10})},
    {"table_blame", patient({.blame = true})},
    {"small_table_blame", patient({.shift = 4, .records_log2 = 10, .blame = true})},
    {"shadow_blame", patient({.mapping = tm::Mapping::shadow, .blame = true})},
};

// Every algorithm that runs `threads` threads over the named configurations, or all. One that lets a single attempt in
// at a time knows no mapping: it is run with one configuration without and one with blame.
inline std::vector<Variant> variants_for(unsigned threads,
                                         std::initializer_list<std::string_view> configurations = {}) {
  const char* const only = std::getenv("LOAM_ALGORITHM");
#ifdef LOAM_TEST_FEW_MAPPINGS
  constexpr bool kFew = true;
#else
  constexpr bool kFew = false;
#endif
  std::vector<Variant> all;
  const auto& blamed = TestedWithBlame::kNames;
  for (const tm::AlgorithmDescription& algorithm : Tested::kDescriptions) {
    if ((only != nullptr && algorithm.name != only) || algorithm.threads_max < threads) continue;
    bool seen[2] = {};
    for (const Configured& each : kConfigurations) {
      if (configurations.size() != 0 &&
          std::find(configurations.begin(), configurations.end(), each.name) == configurations.end())
        continue;
      // The small table is what the others are, and more; tests that name one configuration get it.
      if (kFew && configurations.size() != 1 && each.name != "small_table" && each.name != "small_table_blame")
        continue;
      if (each.config.blame && std::find(blamed.begin(), blamed.end(), algorithm.name) == blamed.end()) continue;
      // A mapping of its own, and its algorithm.
      bool of_the_hash = false;
      Tested::with<false>(algorithm.name, [&]<class Algorithm>() { of_the_hash = kIsOfTheHash<Algorithm>; });
      if ((each.config.mapping == tm::Mapping::hash) != of_the_hash) continue;
      if (!algorithm.overlaps && std::exchange(seen[each.config.blame], true)) continue;
      Variant variant{.algorithm = algorithm.name, .mapping = each.name, .config = each.config};
      bool switches = false;
      Tested::with<false>(algorithm.name, [&]<class Algorithm>() { switches = tm::switches<Algorithm>(); });
      if (switches) variant.runs = tm::switching::Runs::many;
      all.push_back(variant);
    }
  }
  return all;
}

inline const tm::AlgorithmDescription& description_of(const Variant& variant) {
  return *std::find_if(Tested::kDescriptions.begin(), Tested::kDescriptions.end(),
                       [&](const auto& each) { return each.name == variant.algorithm; });
}

// Whether nobody can write what an attempt has read until it ends.
inline bool readers_block_writers(const Variant& variant) {
  bool block = false;
  Tested::with<false>(variant.algorithm, [&]<class Algorithm>() { block = tm::readers_block_writers<Algorithm>(); });
  return block;
}

// Those whose attempts overlap: what tests need that run one transaction in the middle of another.
inline std::vector<Variant> variants(std::initializer_list<std::string_view> configurations = {}) {
  std::vector<Variant> all = variants_for(2, configurations);
  std::erase_if(all, [](const Variant& variant) { return !description_of(variant).overlaps; });
  return all;
}

// Of those that switch also in this way, over a table.
inline void add_switching(std::vector<Variant>& all, tm::switching::Runs runs, std::string_view name,
                          tm::Privatization privatization) {
  for (Variant each : variants({"table"})) {
    if (each.runs == tm::switching::Runs::judged) continue;
    each.runs = runs;
    each.mapping = name;
    each.privatization = privatization;
    all.push_back(each);
  }
}

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) { return info.param.name(); }

// Configures the process for `variant` and runs body.operator()<Driver>().
template <class Body>
void with_variant(const Variant& variant, Body&& body) {
  tm::Config config = variant.config;
  config.privatization = variant.privatization;
  tm::switching::fix(variant.runs);
  tm::configure(config);
  tm::touch_records();  // a test may look at the mapping before its first transaction
  const auto direct = [&]<class Algorithm>() { body.template operator()<tm::Driver<Algorithm>>(); };
  const auto run = [&]<class Algorithm>() { body.template operator()<DriverOf<Algorithm>>(); };
  const bool found = variant.config.blame ? TestedWithBlame::with<true>(variant.algorithm, direct)
                                          : Tested::with<false>(variant.algorithm, run);
  ASSERT_TRUE(found) << variant.algorithm;
}

// As above, in a process of its own.
template <class Body>
void in_variant(const Variant& variant, Body&& body) {
  in_child([&] { with_variant(variant, body); });
}

}  // namespace loam::tests
