// sh6: sizes and lifetimes mixed as programs mix them, each thread on its own.
//   Source: the idea of MicroQuill's sh6bench (the benchmark of SmartHeap 6); the code and the distributions are ours.
//   Each thread holds a window of runs of blocks, of skewed sizes, freed in three orders (runs.hpp).
//   Metric: blocks per second.
#include "workloads/allocation/shared/runs.hpp"

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 8'000'000;
constexpr RunsParameters kParameters(1, "blocks per thread, without warm-up; 0: 8000000, or use duration_ms");

bool run(const Options& options, Recorder& recorder) {
  const RunsSettings settings(options.parameters, kOperations);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Run> runs(options.threads * settings.window, "the runs of sh6");
  Team team(options, settings.length.duration_ms);
  operate_windows(team, options.seed, settings, runs, ledgers, [&ledgers](unsigned thread) {
    return [&ledger = ledgers[thread]](Run* old, Run::Order order) {
      old->release(order, ledger);
      return old;
    };
  });
  const auto live = live_bytes(ledgers);
  for (std::size_t i = 0; i < runs.span().size(); ++i)
    runs[i].release(Run::Order::forward, ledgers[i / settings.window]);
  return report(recorder, team, Totals(ledgers), {{"live_bytes", live}});
}

const base::Registration<Workload> registration{
    Workload{.name = "sh6",
             .summary = "runs of blocks of skewed sizes, freed in three orders by the thread that made them",
             .kinds = {SyncKind::none},
             .parameters = kParameters.all,
             .metrics = kMetrics,
             .check = check_runs,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
