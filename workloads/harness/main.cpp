// A workload executable: one synchronisation, chosen at build time by LOAM_SYNC_HEADER, and every workload.
// The only file of the harness that knows the synchronisation's type.
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

}  // namespace
}  // namespace loam::workloads

int main(int argc, char** argv) {
  using namespace loam::workloads;
  const auto& sync = Sync::description();
  static Options options;
  parse_options(std::span<char* const>(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)), sync, options);
  if (options.workload == nullptr) {
    describe(sync);
    return 0;
  }
  Sync::configure(options.parameters, options.blame);
  Recorder recorder(options, sync);
  recorder.begin(records_of<Sync>());
  explain<Sync>(options, recorder);
  return options.workload->run(options, recorder) ? 0 : kExitNotVerified;
}
