// The places of an application's code where a transaction stands, by number; names and counts of each.
//   A site's name is also a metric: how many transactions of it committed in the timed part. It begins with "tx_".
#pragma once

#include "workloads/harness/joined.hpp"
#include "workloads/harness/metric.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::workloads::applications {

inline constexpr std::size_t kSitesMax = 12;

using SiteCounts = std::array<std::uint64_t, kSitesMax>;

constexpr MetricSpec site_metric(std::string_view name) {
  return {name, "1", MetricSpec::Better::neither, MetricSpec::Kind::count};
}

}  // namespace loam::workloads::applications
