// What a workload tells the harness about itself. One file of workloads/ registers one:
//   const base::Registration<Workload> registration{Workload{.name = "intset", ...}};
#pragma once

#include "runtime/base/registry.hpp"
#include "workloads/harness/parameters.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads {

struct Options;
class Recorder;

struct MetricSpec {
  enum class Better { higher, lower, neither };
  enum class Kind { count, time, bytes, ratio };

  std::string_view name, unit;
  Better better;
  Kind kind;
  std::string_view numerator = {}, denominator = {};  // of a ratio: the metrics to pool by sums
};

struct Workload {
  std::string_view name, summary;
  std::span<const ParameterSpec> parameters;
  std::span<const MetricSpec> metrics;
  // Rejects parameters that contradict each other, before anything is recorded; may be null.
  void (*check)(const ParameterValues& parameters);
  // Runs once: sets up, measures, records the iteration and its histograms, verifies, records the end.
  // returns whether the result was verified
  bool (*run)(const Options& options, Recorder& recorder);
};

}  // namespace loam::workloads
