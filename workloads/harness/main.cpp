// A workload executable: one synchronisation, chosen at build time by LOAM_SYNC_HEADER, and every workload.
// The only file of the harness that knows the synchronisation's type.
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"

#include LOAM_SYNC_HEADER

#include <span>

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
  if constexpr (requires { Sync::explain(options.explain); }) {
    if (options.explain != 0) {
      Sync::explain(options.explain);
      recorder.explained_by(&Sync::write_explanation);
    }
  }
  return options.workload->run(options, recorder) ? 0 : kExitNotVerified;
}
