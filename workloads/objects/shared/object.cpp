#include "workloads/objects/shared/object.hpp"

#include "runtime/delegation/waiting.hpp"
#include "workloads/harness/tick_clock.hpp"

#include <algorithm>

namespace loam::workloads::objects {
namespace {

void add_latency(base::JsonLine& line, const TickClock& clock, const LogHistogram& ticks, const LatencyNames& names) {
  if (ticks.count() == 0) return;
  line.field(names.p50, clock.ns(ticks.quantile(0.5)))
      .field(names.p99, clock.ns(ticks.quantile(0.99)))
      .field(names.max, clock.ns(static_cast<double>(ticks.max())));
}

void add_fairness(base::JsonLine& line, const Totals& totals, const Findings& findings) {
  if (findings.turns && findings.turns->turns != 0) {
    line.field("run_length",
               static_cast<double>(findings.turns->operations) / static_cast<double>(findings.turns->turns))
        .field("executed", findings.turns->operations)
        .field("turns", findings.turns->turns);
  }
  if (totals.workers > 1 && totals.operations != 0) {
    const double mean = static_cast<double>(totals.operations) / static_cast<double>(totals.workers);
    line.field("least_share", static_cast<double>(totals.least) / mean)
        .field("least_operations", totals.least)
        .field("mean_operations", mean);
  }
  if (findings.pauses) line.field("pauses_per_look", *findings.pauses).field("pause_ns", delegation::pause_ns());
}

}  // namespace

Settings::Settings(const Options& options)
    : think(static_cast<std::uint32_t>(options.parameters.integer("think"))),
      latency_every(static_cast<std::uint64_t>(options.parameters.integer("latency_every"))),
      duration_ms(static_cast<std::uint64_t>(options.parameters.integer("duration_ms"))),
      operations(static_cast<std::uint64_t>(options.parameters.integer("operations"))) {
  if (operations != 0) {
    duration_ms = 0;
  } else {
    operations = ~std::uint64_t{0};
  }
}

Allocates allocates_of(const Options& options) {
  return options.parameters.choice("alloc") == "client" ? Allocates::client : Allocates::executor;
}

void check_alloc(const ParameterValues& values, bool transactional) {
  if (transactional && values.choice("alloc") == "client")
    reject("-p alloc", "client", "a transaction may still read what another thread frees", "use alloc=executor");
}

void Totals::add(const Work& work) noexcept {
  operations += work.operations;
  least = std::min(least, work.operations);
  ++workers;
  counters += work.counters;
  for (std::size_t i = 0; i < kKindsMax; ++i) ticks[i] += work.ticks[i];
}

bool report(Recorder& recorder, const Totals& totals, const Findings& findings) {
  const Team& team = findings.team;
  const auto rate = team.rate(totals.operations);
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("operations", totals.operations)
                   .field("ops_per_s", rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s())
                   .field("live_bytes", findings.live_bytes);
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  add_fairness(line, totals, findings);
  if (findings.settings.latency_every != 0) {
    const TickClock clock = TickClock::calibrated();
    for (std::size_t i = 0; i < findings.latencies.size(); ++i)
      add_latency(line, clock, totals.ticks[i], findings.latencies[i]);
  }
  team.add_to(line, rate);
  recorder.add_tm(totals.counters, findings.tm);
  recorder.write();
  team.record_slices(recorder);
  recorder.abort_histogram(totals.counters, findings.tm);
  std::string_view message = findings.mistake;
  if (message.empty() && findings.live_blocks_delta != 0)
    message = "the allocator's live blocks and the object's nodes differ in number";
  recorder.end(message.empty(), message, findings.live_blocks_delta);
  return message.empty();
}

}  // namespace loam::workloads::objects
