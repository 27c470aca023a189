#include "workloads/harness/tm_counters.hpp"

#include <numeric>

namespace loam::workloads {
namespace {

using Better = MetricSpec::Better;
using Kind = MetricSpec::Kind;

constexpr MetricSpec kBefore[] = {
    {"commits", "1", Better::higher, Kind::count},
    {"attempts", "1", Better::neither, Kind::count},
    {"aborts", "1", Better::lower, Kind::count},
};
constexpr MetricSpec kBehind[] = {
    {"serialised", "1", Better::lower, Kind::count},
    {"aborts_per_attempt", "1", Better::lower, Kind::ratio, "aborts", "attempts"},
    {"records_rss_bytes", "B", Better::lower, Kind::bytes},
};

constexpr MetricSpec kHardware[] = {
    {"hardware_commits", "1", Better::higher, Kind::count},
    {"hardware_per_commit", "1", Better::higher, Kind::ratio, "hardware_commits", "commits"},
};

constexpr MetricSpec kSwitching[] = {
    {"scalable_commits", "1", Better::neither, Kind::count},
    {"scalable_per_commit", "1", Better::neither, Kind::ratio, "scalable_commits", "commits"},
    {"switches", "1", Better::lower, Kind::count},
};

// The fixed ones around one for each cause.
constexpr auto kMetrics = [] {
  std::array<MetricSpec, std::size(kBefore) + tm::kAbortCauses + std::size(kBehind)> all{};
  std::size_t at = 0;
  for (const auto& metric : kBefore) all[at++] = metric;
  for (const auto& row : tm::kAbortCauseTable) all[at++] = {row.counter, "1", Better::lower, Kind::count};
  for (const auto& metric : kBehind) all[at++] = metric;
  return all;
}();

// combine(mine, other) for every number.
template <class Combine>
TmCounters& merge(TmCounters& mine, const TmCounters& other, Combine combine) noexcept {
  mine.commits = combine(mine.commits, other.commits);
  mine.attempts = combine(mine.attempts, other.attempts);
  mine.hardware = combine(mine.hardware, other.hardware);
  mine.serialised = combine(mine.serialised, other.serialised);
  mine.scalable = combine(mine.scalable, other.scalable);
  mine.switches = combine(mine.switches, other.switches);
  for (std::size_t i = 0; i < mine.aborts.size(); ++i) mine.aborts[i] = combine(mine.aborts[i], other.aborts[i]);
  for (std::size_t i = 0; i < mine.commits_after_aborts.size(); ++i)
    mine.commits_after_aborts[i] = combine(mine.commits_after_aborts[i], other.commits_after_aborts[i]);
  return mine;
}

static_assert(sizeof(TmCounters) == (6 + tm::kAbortCauses + kAbortsBounds.size()) * sizeof(std::uint64_t),
              "merge() covers every number");

}  // namespace

std::uint64_t TmCounters::aborts_total() const noexcept {
  return std::accumulate(aborts.begin(), aborts.end(), std::uint64_t{0});
}

TmCounters& TmCounters::operator+=(const TmCounters& other) noexcept {
  return merge(*this, other, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

TmCounters& TmCounters::operator-=(const TmCounters& other) noexcept {
  return merge(*this, other, [](std::uint64_t a, std::uint64_t b) { return a - b; });
}

std::span<const MetricSpec> tm_metrics() noexcept { return kMetrics; }

std::span<const MetricSpec> hardware_metrics() noexcept { return kHardware; }

std::span<const MetricSpec> switching_metrics() noexcept { return kSwitching; }

}  // namespace loam::workloads
