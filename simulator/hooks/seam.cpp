#include "runtime/platform/simulator_calls.hpp"

#include "simulator/engine/access.hpp"
#include "simulator/engine/allocator.hpp"
#include "simulator/engine/call_costs.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/counters.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/start.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/hooks/exported.hpp"

#include <iterator>

using namespace loam::simulator;

namespace {

// Of x86 since Skylake it is 140 cycles, before some 10; the back-offs of programs are made for the latter.
constexpr std::uint64_t kPauseCycles = 10;
// A restart takes longjmp's loads and a pipeline that is empty; measured with the software that it stands for, 200.
constexpr std::uint64_t kRestartCycles = 200;

}  // namespace

LOAM_EXPORTED void loam_simulator_pause() {
  spend(kPauseCycles);
  if (checker != nullptr && simulated()) checker->pause();
}
LOAM_EXPORTED std::uint64_t loam_simulator_ticks() { return now.core == nullptr ? 0 : now.core->clock; }
LOAM_EXPORTED void loam_simulator_restart() { spend(kRestartCycles); }
LOAM_EXPORTED int loam_simulator_active() { return now.thread != nullptr; }
LOAM_EXPORTED std::size_t loam_simulator_counters() { return now.thread == nullptr ? 0 : std::size(kCounters); }
LOAM_EXPORTED const char* loam_simulator_counter_name(std::size_t index) { return kCounters[index].name.data(); }
LOAM_EXPORTED std::uint64_t loam_simulator_counter(std::size_t index) {
  return kCounters[index].value(model->counts(now.core->number));
}
LOAM_EXPORTED const char* loam_simulator_machine() { return the_machine().name; }
LOAM_EXPORTED std::uint64_t loam_simulator_seed() { return settings.seed; }
LOAM_EXPORTED const char* loam_simulator_costs() { return counts_blocks() ? "per block" : "per access"; }
LOAM_EXPORTED const char* loam_simulator_allocation() {
  return allocator_is_native() ? call_costs.kind() : "instrumented";
}
LOAM_EXPORTED int loam_simulator_addresses_vary() { return addresses_vary(); }
