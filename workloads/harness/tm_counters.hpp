// Counts of a transactional memory: commits, aborts by cause, ownership records. In records they are under `tm`.
#pragma once

#include "runtime/tm/abort_cause.hpp"
#include "workloads/harness/metric.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loam::workloads {

// kAbortsBounds[i]: bucket i counts transactions that aborted so often or more, but fewer than kAbortsBounds[i + 1]
// times.
inline constexpr std::array<std::uint64_t, 12> kAbortsBounds{0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 1024};

struct TmCounters {
  std::uint64_t commits = 0, attempts = 0;
  std::uint64_t hardware = 0;    // of the commits those of hardware attempts
  std::uint64_t serialised = 0;  // transactions that ran alone after too many aborts: no parallelism, hence shown
  std::uint64_t scalable = 0;    // of the commits those of the scalable one of two algorithms
  std::uint64_t switches = 0;    // changes between the two
  std::array<std::uint64_t, tm::kAbortCauses> aborts{};
  std::array<std::uint64_t, kAbortsBounds.size()> commits_after_aborts{};

  std::uint64_t aborts_total() const noexcept;
  TmCounters& operator+=(const TmCounters& other) noexcept;
  TmCounters& operator-=(const TmCounters& other) noexcept;
};

struct TmRecords {
  std::string_view mapping = "none";  // shadow-full, shadow-window, table, hash or none
  unsigned read_set_entry_bytes = 0;
  std::uint64_t rss_bytes = 0;
  bool hardware = false;  // whether there are hardware attempts
  bool switches = false;  // whether there are two algorithms
};

// The metrics that every workload has over a transactional memory that counts; they follow the workload's own.
std::span<const MetricSpec> tm_metrics() noexcept;
// Behind these, of one that uses hardware transactions.
std::span<const MetricSpec> hardware_metrics() noexcept;
// Or of one that changes between two algorithms.
std::span<const MetricSpec> switching_metrics() noexcept;

// Whether a synchronisation is a transactional memory that counts what it does.
template <class S>
constexpr bool kCounts = requires {
  S::counters();
  S::records();
};

// This thread's, cumulative; zeroes of a synchronisation without.
template <class S>
TmCounters tm_counters() {
  if constexpr (kCounts<S>) return S::counters();
  return {};
}

template <class S>
std::optional<TmRecords> tm_records() {
  if constexpr (kCounts<S>) return S::records();
  return std::nullopt;
}

}  // namespace loam::workloads
