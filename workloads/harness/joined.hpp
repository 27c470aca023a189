// Joins constant tables: those that a family of workloads shares, and those of one workload.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace loam::workloads {

template <class T, std::size_t n, std::size_t m>
consteval std::array<T, n + m> joined(const T (&first)[n], const std::type_identity_t<T> (&second)[m]) {
  std::array<T, n + m> all{};
  for (std::size_t i = 0; i < n; ++i) all[i] = first[i];
  for (std::size_t i = 0; i < m; ++i) all[n + i] = second[i];
  return all;
}

}  // namespace loam::workloads
