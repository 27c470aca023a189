// Workloads for the test of the harness: one with a file, and one that cannot run here.
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/workload.hpp"

#include <sys/stat.h>

namespace loam::workloads {
namespace {

constexpr ParameterSpec kParameters[] = {ParameterSpec::file("input", "what is read")};
constexpr MetricSpec kMetrics[] = {{"input_bytes", "B", MetricSpec::Better::neither, MetricSpec::Kind::bytes}};

bool run(const Options& options, Recorder& recorder) {
  struct stat status{};
  const auto path = options.parameters.file("input");
  const bool found = !path.empty() && ::stat(path.data(), &status) == 0;
  recorder.iteration(0).field("elapsed_s", 0.0).field("input_bytes", status.st_size);
  recorder.write();
  recorder.end(found, found ? "" : "no input", 0);
  return found;
}

const base::Registration<Workload> reads_file{Workload{.name = "reads-file",
                                                       .summary = "the size of a file",
                                                       .kinds = {SyncKind::delegation},
                                                       .parameters = kParameters,
                                                       .metrics = kMetrics,
                                                       .check = nullptr,
                                                       .run = run}};
const base::Registration<Workload> elsewhere{Workload{.name = "elsewhere",
                                                      .summary = "for other kinds",
                                                      .kinds = {SyncKind::transactional, SyncKind::managed},
                                                      .parameters = {},
                                                      .metrics = kMetrics,
                                                      .check = nullptr,
                                                      .run = run}};

}  // namespace
}  // namespace loam::workloads
