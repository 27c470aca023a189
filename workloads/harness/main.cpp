// A workload executable: one synchronisation, chosen at build time by LOAM_SYNC_HEADER, and the workloads linked to it.
// The only file of the harness that knows the synchronisation's type.
#include "runtime/base/check.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"

#include LOAM_SYNC_HEADER

#include <span>

namespace loam::workloads {
namespace {

// Lets a run be explained, under synchronisations that can.
template <class S>
void explain(const Options& options, Recorder& recorder) {
  if constexpr (requires { S::explain(options.explain); }) {
    if (options.explain == 0) return;
    S::explain(options.explain);
    recorder.explained_by(&S::write_explanation);
  }
}

template <class S>
void start() {
  if constexpr (requires { S::start(); }) S::start();
}

template <class S>
void stop() {
  if constexpr (requires { S::stop(); }) S::stop();
}

}  // namespace
}  // namespace loam::workloads

int main(int argc, char** argv) {
  using namespace loam::workloads;
  const auto& sync = Sync::description();
  LOAM_CHECK(!kCounts<Sync> || sync.kind == SyncKind::transactional, "{} has no attempts to count", sync.name);
  static Options options;
  parse_options(std::span<char* const>(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)), sync, options);
  if (options.workload == nullptr) {
    describe(sync, kCounts<Sync>);
    return 0;
  }
  if (!sync.needs.empty() && !sync.reason_against().empty())
    reject("--sync", sync.name, sync.reason_against(), "choose another; it is never replaced by one");
  Sync::configure(options);
  Recorder recorder(options, sync);
  recorder.begin(tm_records<Sync>());
  explain<Sync>(options, recorder);
  start<Sync>();
  const bool verified = options.workload->run(options, recorder);
  stop<Sync>();
  return verified ? 0 : kExitNotVerified;
}
