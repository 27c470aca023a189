#include "simulator/engine/settings.hpp"

#include "simulator/engine/call_costs.hpp"
#include "simulator/engine/fail.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string_view>

namespace loam::simulator {
namespace {

// Where each execution may depart as often as it likes.
constexpr std::uint64_t kBoundMax = 1'000'000;

std::uint64_t number(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  const auto [stopped, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || stopped != text.data() + text.size())
    fail("{}={}: must be a whole number; leave it out for the default", name, text);
  return value;
}

}  // namespace

Settings settings;

void read_settings(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (!entry.starts_with("LOAM_SIM_")) continue;
    const auto equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals), text = entry.substr(equals + 1);
    if (name == "LOAM_SIM_MACHINE") {
      settings.machine = text.data();
    } else if (name == "LOAM_SIM_STATISTICS") {
      settings.statistics = text.data();
    } else if (name == "LOAM_SIM_SEED") {
      settings.seed = number(name, text);
    } else if (name == "LOAM_SIM_QUANTUM") {
      settings.quantum = number(name, text);
    } else if (name == "LOAM_SIM_CYCLES_MAX") {
      settings.cycles_max = number(name, text);
    } else if (name == "LOAM_SIM_ALLOCATION") {
      call_costs.read(text.data());
    } else if (name == "LOAM_SIM_ENGINE") {
      if (text != "fibers" && text != "threads") fail("{}={}: must be fibers or threads", name, text);
      settings.threads = text == "threads";
    } else if (name == "LOAM_SIM_CHECK") {
      constexpr std::string_view kChecks[] = {"", "random", "pct", "exhaustive"};
      const auto* const found = std::find(std::begin(kChecks) + 1, std::end(kChecks), text);
      if (found == std::end(kChecks)) fail("{}={}: must be random, pct or exhaustive", name, text);
      settings.check = static_cast<Check>(found - kChecks);
    } else if (name == "LOAM_SIM_BOUND") {
      settings.bound = static_cast<unsigned>(std::min<std::uint64_t>(number(name, text), kBoundMax));
    } else if (name == "LOAM_SIM_EXECUTIONS_MAX") {
      settings.executions_max = number(name, text);
    } else if (name == "LOAM_SIM_LINE_TIMES") {
      settings.line_times_ns = number(name, text);
    } else if (name == "LOAM_SIM_SCHEDULE") {
      settings.schedule = text.data();
    } else {
      fail(
          "{}: no such setting; known: MACHINE, SEED, QUANTUM, ALLOCATION, CYCLES_MAX, ENGINE, CHECK, BOUND, "
          "EXECUTIONS_MAX, SCHEDULE, LINE_TIMES, STATISTICS",
          name);
    }
  }
  if (settings.schedule != nullptr && settings.check != Check::exhaustive)
    fail("LOAM_SIM_SCHEDULE={}: only with LOAM_SIM_CHECK=exhaustive, which found it", settings.schedule);
}

}  // namespace loam::simulator
