// sh8: sizes and lifetimes mixed as in sh6, with more large blocks, and many blocks freed by another thread.
//   Source: the idea of MicroQuill's sh8bench (the benchmark of SmartHeap 8); the code and the distributions are ours.
//   A run that gives way in a thread's window (runs.hpp) is left at the next place of an exchange, and the run that is
//   found there is freed. All threads go through the same places in the same order, so often another has left it; a
//   single thread finds its own of some time ago.
//   Metric: blocks per second. freed_remotely: blocks that another thread freed than the one that allocated them, about
//   half of them where two threads run at the same time, few where they take turns on a processor.
#include "workloads/allocation/runs.hpp"

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 7'000'000;
constexpr RunsParameters kParameters(5, "blocks per thread, without warm-up; 0: 7000000, or use duration_ms");

constexpr MetricSpec kOwnMetrics[] = {kMetrics[0], kMetrics[1], kMetrics[2], kMetrics[3], kMetrics[4], kFreedRemotely};

constexpr std::size_t kPlaces = 64;

struct alignas(platform::kApartBytes) Place {
  std::atomic<Run*> run{nullptr};
};
constinit Place places[kPlaces];

// Leaves a run at a place for the one that is there.
Run* exchange(std::uint64_t turn, Run* run) noexcept {
  // sh8.X: release publishes the run's blocks, and what is in them, to the thread whose acquire takes it over.
  return places[turn % kPlaces].run.exchange(run, std::memory_order_acq_rel);
}

bool run(const Options& options, Recorder& recorder) {
  const RunsSettings settings(options.parameters, kOperations);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Run> runs(options.threads * settings.window + kPlaces, "the runs of sh8");
  const auto empty = runs.span().last(kPlaces);
  for (std::size_t i = 0; i < kPlaces; ++i) exchange(i, &empty[i]);

  Team team(options, settings.length.duration_ms);
  auto body = [&](Team::Member& member) {
    const unsigned thread = member.index();
    Ledger& ledger = ledgers[thread];
    base::Random random(options.seed, thread);
    Window window(runs.span().subspan(thread * settings.window, settings.window));
    window.fill(settings, random, ledger);
    // The threads begin at places far from each other.
    std::uint64_t turn = thread * (kPlaces / 2 + 1);
    const auto operate = [&](Phase phase, std::uint64_t limit) {
      return window.operate(settings, random, ledger, member.phase(), phase, limit, [&](Run* old, Run::Order order) {
        Run* const found = exchange(turn++, old);
        found->release(order, ledger);
        return found;
      });
    };
    member.wait_for_start();
    operate(Phase::warmup, ~std::uint64_t{0});
    member.begin_timed();
    ledger.operations = operate(Phase::timed, settings.length.operations);
    member.end_timed();
  };
  team.run(body);
  const std::uint64_t live = live_bytes(ledgers), freed_remotely = Totals(ledgers).freed_remotely;
  // All of them, wherever they were left.
  for (Run& left : runs.span()) left.release(Run::Order::forward, ledgers[0]);
  const Totals totals(ledgers);
  open_report(recorder, team, totals).field("live_bytes", live).field("freed_remotely", freed_remotely);
  recorder.write();
  return close_report(recorder, totals);
}

const base::Registration<Workload> registration{
    Workload{.name = "sh8",
             .summary = "runs of blocks of skewed sizes, freed in three orders, many by another thread",
             .parameters = kParameters.all,
             .metrics = kOwnMetrics,
             .check = check_runs,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
