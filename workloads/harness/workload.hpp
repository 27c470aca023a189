// The description of a workload for the harness. Each file of a folder of workloads/ registers one:
//   const base::Registration<Workload> registration{Workload{.name = "intset", ...}};
#pragma once

#include "runtime/base/registry.hpp"
#include "workloads/harness/metric.hpp"
#include "workloads/harness/parameters.hpp"
#include "workloads/harness/sync.hpp"

#include <span>
#include <string_view>

namespace loam::workloads {

struct Options;
class Recorder;

struct Workload {
  std::string_view name, summary;
  SyncKinds kinds;  // that it can run on; an executable of another kind does not offer it
  std::span<const ParameterSpec> parameters;
  std::span<const MetricSpec> metrics;
  // Rejects parameters that contradict each other, before anything is recorded; may be null.
  void (*check)(const ParameterValues& parameters);
  // Runs once: sets up, measures, records the iteration and its histograms, verifies, records the end.
  // returns whether the result was verified
  bool (*run)(const Options& options, Recorder& recorder);
};

}  // namespace loam::workloads
