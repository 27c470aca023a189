#include "workloads/harness/recorder.hpp"

#include "runtime/platform/machine.hpp"
#include "workloads/harness/build_info.hpp"

#include <cerrno>
#include <cstring>

namespace loam::workloads {
namespace {

// The longest record, begin with 1024 processors and 64 parameters, stays under half of it.
constinit char line_buffer[32 * 1024];

}  // namespace

base::JsonLine& Recorder::start(std::string_view kind) {
  line_ = base::JsonLine(line_buffer);
  return line_.object().field("kind", kind);
}

void Recorder::begin(const std::optional<TmRecords>& tm) {
  auto& line = start("begin");
  line.field("schema", kRecordSchema)
      .field("workload", options_.workload->name)
      .field("sync", sync_.name)
      .field("threads", options_.threads)
      .field("seed", options_.seed)
      .field("blame", options_.blame)
      .field("warmup_ms", options_.warmup_ms)
      .object("parameters");
  for (const auto& item : options_.parameters.items()) {
    if (item.spec->type == ParameterSpec::Type::choice) {
      line.field(item.spec->name, item.spec->choices[static_cast<std::size_t>(item.value)]);
    } else if (item.spec->type == ParameterSpec::Type::file) {
      line.field(item.spec->name, item.path);
    } else {
      line.field(item.spec->name, item.value);
    }
  }
  line.end().field("preset", kPreset).field("compiler", kCompiler).field("build_id", build_id()).array("cpus");
  for (const unsigned cpu : options_.cpus()) line.value(cpu);
  line.end();
  if (!options_.reserved_cpus().empty()) {
    line.array("reserved_cpus");
    for (const unsigned cpu : options_.reserved_cpus()) line.value(cpu);
    line.end();
  }
#ifdef LOAM_SIMULATED
  if (loam_simulator_active())
    line.object("simulated")
        .field("machine", std::string_view(loam_simulator_machine()))
        .field("seed", loam_simulator_seed())
        .field("costs", std::string_view(loam_simulator_costs()))
        .field("allocation", std::string_view(loam_simulator_allocation()))
        .field("addresses_vary", loam_simulator_addresses_vary() != 0)
        .end();
#endif
  if (tm)
    line.object("tm")
        .field("records_mapping", tm->mapping)
        .field("read_set_entry_bytes", tm->read_set_entry_bytes)
        .end();
  write();
}

base::JsonLine& Recorder::iteration(unsigned index) { return start("iteration").field("index", index); }

base::JsonLine& Recorder::add_tm(const TmCounters& counters, const std::optional<TmRecords>& records) {
  if (!records) return line_;
  const auto aborts = counters.aborts_total();
  line_.object("tm").field("commits", counters.commits).field("attempts", counters.attempts).field("aborts", aborts);
  for (std::size_t i = 0; i < counters.aborts.size(); ++i)
    line_.field(tm::kAbortCauseTable[i].counter, counters.aborts[i]);
  line_.field("serialised", counters.serialised);
  if (counters.attempts != 0)
    line_.field("aborts_per_attempt", static_cast<double>(aborts) / static_cast<double>(counters.attempts));
  if (records->hardware) {
    line_.field("hardware_commits", counters.hardware);
    if (counters.commits != 0)
      line_.field("hardware_per_commit",
                  static_cast<double>(counters.hardware) / static_cast<double>(counters.commits));
  }
  if (records->switches) {
    line_.field("scalable_commits", counters.scalable);
    if (counters.commits != 0)
      line_.field("scalable_per_commit",
                  static_cast<double>(counters.scalable) / static_cast<double>(counters.commits));
    line_.field("switches", counters.switches);
  }
  return line_.field("records_rss_bytes", records->rss_bytes).end();
}

void Recorder::abort_histogram(const TmCounters& counters, const std::optional<TmRecords>& records) {
  if (records) histogram("aborts_per_commit", kAbortsBounds, counters.commits_after_aborts);
}

void Recorder::write() {
  line_.end();
  if (line_.write_to(options_.records)) return;
  reject("--records", options_.records_name, "cannot be written", std::strerror(errno));
}

void Recorder::histogram(std::string_view name, std::span<const std::uint64_t> bounds,
                         std::span<const std::uint64_t> counts) {
  auto& line = start("histogram").field("name", name).array("bounds");
  for (const auto bound : bounds) line.value(bound);
  line.end().array("counts");
  for (const auto count : counts) line.value(count);
  line.end();
  write();
}

base::JsonLine& Recorder::series(std::string_view name, std::span<const std::string_view> columns) {
  auto& line = start("series").field("name", name).array("columns");
  for (const auto column : columns) line.value(column);
  return line.end().array("rows");
}

void Recorder::end(bool verified, std::string_view message, std::int64_t live_blocks_delta) {
  if (explanation_ != nullptr) explanation_(*this);
  start("end").field("verified", verified).field("message", message).field("live_blocks_delta", live_blocks_delta);
  write();
}

}  // namespace loam::workloads
