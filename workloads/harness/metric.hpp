// The description of a value in an iteration record. The lab has no list of metrics of its own.
#pragma once

#include <string_view>

namespace loam::workloads {

struct MetricSpec {
  enum class Better { higher, lower, neither };
  enum class Kind { count, time, bytes, ratio };

  std::string_view name = {}, unit = {};
  Better better = Better::neither;
  Kind kind = Kind::count;
  std::string_view numerator = {}, denominator = {};  // of a ratio: the metrics to pool by sums
};

// What a workload of operations by a Team has. The first is the one by which they are compared.
inline constexpr MetricSpec kRateMetrics[] = {
    {"ops_per_s", "1/s", MetricSpec::Better::higher, MetricSpec::Kind::ratio, "rated_operations", "rated_s"},
    {"operations", "1", MetricSpec::Better::higher, MetricSpec::Kind::count},
    {"elapsed_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
    {"rated_operations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"rated_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
    {"thread_cpu_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
    {"run_delay_s", "s", MetricSpec::Better::lower, MetricSpec::Kind::time},
};

}  // namespace loam::workloads
