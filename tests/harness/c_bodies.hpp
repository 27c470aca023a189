// Bodies of the C interface as lambdas, and processes in which an algorithm is chosen for it.
#pragma once

#include "include/loam/tm.h"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace loam::tests {

// loam_atomically() with a lambda.
template <class F>
int atomically(F&& f, unsigned flags = 0) {
  return loam_atomically([](loam_tx* tx, void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(tx); }, &f,
                         flags);
}
template <class F>
int closed(loam_tx* tx, F&& f) {
  return loam_tx_closed(
      tx, [](loam_tx* part, void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(part); }, &f);
}

// Runs `body` in a process whose transactions use this algorithm.
template <class Body>
void in_c(std::string_view algorithm, const Body& body, unsigned serialise_after = 16) {
  in_child([&] {
    loam_config config;
    loam_config_default(&config);
    const std::string name(algorithm);
    config.algorithm = name.c_str();
    config.privatization = "none";  // another thread commits while an attempt stands still
    config.serialise_after = serialise_after;
    ASSERT_EQ(loam_configure(&config), LOAM_OK) << loam_error();
    body();
  });
}

// The names of algorithms, as those of tests.
inline std::string test_name_of(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace loam::tests
