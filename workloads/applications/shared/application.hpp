// The frame of the applications (docs/internals/applications.md): set-up, the timed region with its phases, counts by
// site, verification, records.
//   An application is a class template over the synchronisation:
//
//     template <class SyncType>
//     class Genome {
//      public:
//       static constexpr std::string_view kSites[] = {"tx_deduplicate", ...};    // one name per site
//       explicit Genome(const Options&);                // parameters; what has to exist before the threads
//       void set_up(SetupAccess<SyncType>&);            // worker 0, before the clock starts
//       void work(Worker<SyncType>&);                   // every worker: the timed region
//       Outcome verify(SetupAccess<SyncType>&);         // after all have ended
//       void add_to(base::JsonLine&) const;             // the application's own metrics
//     };
//     const base::Registration<Workload> registration{Workload{..., .check = check_application<check>, .run = run_application<Genome>}};
//
//   In work() a transaction is worker.update(site, [&](auto& access) { ... return result; }). The body may run several
//   times: what it changes beside shared memory, it sets anew at its start. worker.barrier() ends a phase. The unit of
//   ops_per_s is what the application counts by worker.did().
//   Set-up runs in the first worker, as the original suite's main thread is a worker: its blocks are its own later on.
// Parameters of all: size (sizes.hpp), sites, abort_every.
#pragma once

#include "runtime/sync/barrier.hpp"
#include "workloads/applications/shared/report.hpp"
#include "workloads/applications/shared/set_sizes.hpp"
#include "workloads/applications/shared/setup_access.hpp"
#include "workloads/applications/shared/worker.hpp"

#include LOAM_SYNC_HEADER

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace loam::workloads::applications {

template <template <class> class Application, class SyncType>
bool run_with(const Options& options, Recorder& recorder) {
  Application<SyncType> application(options);
  SetupAccess<SyncType> setup;
  Team team(options, 0);
  sync::Barrier barrier(options.threads);
  const auto abort_every = static_cast<std::uint64_t>(options.parameters.integer("abort_every"));
  std::atomic<bool> is_set_up{false};
  auto body = [&](Team::Member& member) {
    if (member.index() == 0) {
      application.set_up(setup);
      // relaxed: the barrier of the start orders what was built; this only lets the others sleep until then.
      is_set_up.store(true, std::memory_order_relaxed);
      is_set_up.notify_all();
    } else {
      is_set_up.wait(false, std::memory_order_relaxed);  // relaxed: as above
    }
    Worker<SyncType> worker(member.index(), options.threads, abort_every, barrier);
    member.wait_for_start();
    const TmCounters before = tm_counters<SyncType>();
    member.timed([&](Pace&) { application.work(worker); });
    (worker_results()[member.index()].counters = tm_counters<SyncType>()) -= before;
    SyncType::thread_exit();
  };
  team.run(body);

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  const auto results = worker_results(options.threads);
  const Outcome outcome = application.verify(setup);
  const Findings findings{.team = team,
                          .tm = records,
                          .outcome = outcome,
                          .live_blocks = SyncType::live_blocks() + setup.live_blocks(),
                          .sites = Application<SyncType>::kSites,
                          .with_sets = std::is_same_v<SyncType, SetSync>};
  application.add_to(open_report(recorder, results, findings));
  return close_report(recorder, results, findings);
}

// Before anything runs: what this synchronisation cannot do, then what the application refuses.
template <void (*kOwnCheck)(const ParameterValues&)>
void check_application(const ParameterValues& parameters) {
  check_common(parameters, kRestarts<Sync>, kAlone<Sync>);
  kOwnCheck(parameters);
}

template <template <class> class Application>
bool run_application(const Options& options, Recorder& recorder) {
  if constexpr (kAlone<Sync>)
    if (options.parameters.choice("sites") == "sets") return run_with<Application, SetSync>(options, recorder);
  return options.blame ? run_with<Application, BlameSync>(options, recorder)
                       : run_with<Application, Sync>(options, recorder);
}

}  // namespace loam::workloads::applications
