// sh8: sizes and lifetimes mixed as in sh6, with more large blocks, and many blocks freed by another thread.
//   Source: the idea of MicroQuill's sh8bench (the benchmark of SmartHeap 8); the code and the distributions are ours.
//   A run that gives way in a thread's window (runs.hpp) is left at an exchange, and the run that is found there is
//   freed (exchange.hpp).
//   Metric: blocks per second. freed_remotely: blocks that another thread freed than the one that allocated them, about
//   half of them where two threads run at the same time, few where they take turns on a processor.
#include "workloads/allocation/shared/exchange.hpp"
#include "workloads/allocation/shared/runs.hpp"

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 7'000'000;
constexpr RunsParameters kParameters(5, "blocks per thread, without warm-up; 0: 7000000, or use duration_ms");

constexpr auto kOwnMetrics = joined(kMetrics, {kFreedRemotely});

constinit Exchange<Run> exchange;

bool run(const Options& options, Recorder& recorder) {
  const RunsSettings settings(options.parameters, kOperations);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Run> runs(options.threads * settings.window + exchange.kPlaces, "the runs of sh8");
  exchange.open(runs.span().last<exchange.kPlaces>());
  Team team(options, settings.length.duration_ms);
  operate_windows(team, options.seed, settings, runs, ledgers, [&ledgers](unsigned thread) {
    return [&ledger = ledgers[thread], turn = exchange.first_turn(thread)](Run* old, Run::Order order) mutable {
      Run* const found = exchange.leave(turn++, old);
      found->release(order, ledger);
      return found;
    };
  });
  const std::uint64_t live = live_bytes(ledgers), freed_remotely = Totals(ledgers).freed_remotely;
  // All of them, wherever they were left.
  for (Run& left : runs.span()) left.release(Run::Order::forward, ledgers[0]);
  return report(recorder, team, Totals(ledgers), {{"live_bytes", live}, {"freed_remotely", freed_remotely}});
}

const base::Registration<Workload> registration{
    Workload{.name = "sh8",
             .summary = "runs of blocks of skewed sizes, freed in three orders, many by another thread",
             .kinds = {SyncKind::none},
             .parameters = kParameters.all,
             .metrics = kOwnMetrics,
             .check = check_runs,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
