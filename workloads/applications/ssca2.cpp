// ssca2: builds the arrays of a graph from a list of its edges.
//   Source: kernel 1 of SSCA#2 as STAMP has it (Cao Minh et al., IISWC 2008); the algorithm and its graphs as published,
//   written anew. Not built: weights, which kernel 1 does not read.
//   What it stresses: many tiny transactions that hardly ever meet, cache misses, 11 barriers.
//   Other than the published code: the number of vertices does not grow with the threads; a vertex with more implied
//   edges than two arrays hold keeps them all.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/ssca2_kernel.hpp"

#include <optional>

namespace loam::workloads::applications {
namespace {

constexpr std::int64_t kPercent = 100;

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("scale", 28, "1", "log2 of the vertices, 3 or more; 0: as size says"),
    ParameterSpec::integer("inter_percent", 100, 0, kPercent, "%",
                           "chance of an edge to the next vertex if that is in another clique; each time that the "
                           "distance doubles it is halved"),
    ParameterSpec::integer(
        "unidirectional_percent", 100, 0, kPercent, "%",
        "chance that two vertices of a clique have one edge instead of one each way and parallel ones"),
    ParameterSpec::integer("parallel", 3, 1, 64, "1", "most edges from one vertex to the same other one"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

constexpr std::string_view kSiteNames[] = {"tx_largest_vertex", "tx_count_edges", "tx_append"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[ssca2::kLargestVertex]),
    site_metric(kSiteNames[ssca2::kCountEdges]),
    site_metric(kSiteNames[ssca2::kAppend]),
    {"edges", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"in_degree_checksum", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

ssca2::GraphSettings settings_of(const ParameterValues& parameters) {
  return {.scale = static_cast<unsigned>(sized(parameters, "scale", {14, 13, 18, 20})),
          .inter_percent = static_cast<unsigned>(parameters.integer("inter_percent")),
          .unidirectional_percent = static_cast<unsigned>(parameters.integer("unidirectional_percent")),
          .parallel_max = static_cast<unsigned>(parameters.integer("parallel"))};
}

void check(const ParameterValues& parameters) {
  const auto settings = settings_of(parameters);
  if (settings.scale < 3) reject("-p scale", settings.scale == 1 ? "1" : "2", "a graph has at least 2^3 vertices");
  reject_if_too_large(parameters, static_cast<double>(ssca2::graph_bytes(settings)));
}

template <class SyncType>
class Ssca2 {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Ssca2(const Options& options) : settings_(settings_of(options.parameters)), threads_(options.threads) {}

  void set_up(SetupAccess<SyncType>&) {
    edges_ = ssca2::make_graph(settings_);
    kernel_.emplace(edges_, settings_.clique_max(), threads_);
  }

  void work(Worker<SyncType>& worker) { kernel_->work(worker); }

  Outcome verify(SetupAccess<SyncType>&) {
    return {.broken = ssca2::verify(edges_, kernel_->result()), .reachable_blocks = kernel_->blocks()};
  }

  void add_to(base::JsonLine& line) const {
    line.field("edges", edges_.size()).field("in_degree_checksum", ssca2::in_degree_checksum(kernel_->result()) >> 16);
  }

 private:
  const ssca2::GraphSettings settings_;
  const unsigned threads_;
  ssca2::EdgeList edges_;
  std::optional<ssca2::Kernel> kernel_;
};

const base::Registration<Workload> registration{
    Workload{.name = "ssca2",
             .summary = "builds a graph's arrays from its edges; many tiny transactions; counts implied edges",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Ssca2>}};

}  // namespace
}  // namespace loam::workloads::applications
