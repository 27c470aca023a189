#include "workloads/applications/shared/report.hpp"

#include "workloads/applications/shared/set_sizes.hpp"

namespace loam::workloads::applications {
namespace {

constinit WorkerResult results_of_threads[kThreadsMax];

}  // namespace

std::span<WorkerResult> worker_results(unsigned threads) noexcept { return {results_of_threads, threads}; }

void check_common(const ParameterValues& parameters, bool can_restart, bool alone) {
  if (parameters.choice("sites") == "sets" && !alone)
    reject("-p sites", "sets", "sets are counted without synchronisation, by one thread", "use --sync sequential");
  if (parameters.integer("abort_every") == 0 || can_restart) return;
  reject("-p abort_every", "", "this synchronisation cannot take an operation back",
         "use a transactional memory of loam list syncs, such as etl-wb");
}

base::JsonLine& open_report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings) {
  WorkerResult sum;
  for (const auto& result : results) {
    sum.operations += result.operations;
    sum.counters += result.counters;
    for (std::size_t i = 0; i < kSitesMax; ++i) sum.transactions[i] += result.transactions[i];
  }
  const Team& team = findings.team;
  const auto rate = team.rate(sum.operations);
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("operations", sum.operations)
                   .field("ops_per_s", rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s());
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  team.add_to(line, rate);
  for (std::size_t i = 0; i < findings.sites.size(); ++i) line.field(findings.sites[i], sum.transactions[i]);
  recorder.add_tm(sum.counters, findings.tm);
  return line;
}

bool close_report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings) {
  recorder.write();
  TmCounters counters;
  for (const auto& result : results) counters += result.counters;
  recorder.abort_histogram(counters, findings.tm);
  if (findings.with_sets) set_sizes::record(recorder, findings.sites);

  std::string_view broken = findings.outcome.broken;
  const std::int64_t delta = findings.live_blocks - findings.outcome.reachable_blocks;
  if (broken.empty() && delta != 0)
    broken = "the allocator's live blocks and those that can be reached differ in number";
  recorder.end(broken.empty(), broken, delta);
  return broken.empty();
}

}  // namespace loam::workloads::applications
